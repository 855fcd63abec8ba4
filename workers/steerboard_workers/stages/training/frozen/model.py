"""Models that no step changes, opened for forward passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from steerboard_contracts.training import TrainingConfig
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.modules import PolicyModule, RewardModule
from steerboard_workers.stages.distributed.strategies import Strategy
from steerboard_workers.stages.models.adapters import is_adapter, load_weights, merge
from steerboard_workers.stages.models.model_io import check_gives_rewards, check_safe, expert_kernels
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.passes import Reader
from steerboard_workers.stages.training.setup import batcher_of, follow_autocast


@dataclass(frozen=True)
class FrozenModel:
    """One of a run: the input `source`. `scalar`: it has one number for its head. `window`: its length in tokens, where
    it has other tokens than the model in training."""

    name: str
    source: str
    scalar: bool
    dtype: torch.dtype
    temperature: float
    pad: int
    window: int | None = None


def open_reader(
    stage: Stage, config: TrainingConfig, model: FrozenModel, sharing: Strategy, examples: list[Example], share: bool
) -> Reader:
    """`examples`: with responses, to find out how it may be read; `share`: read a prompt once, where that can be."""
    with sharing.loading(), stage.using_model(model.source, "opening"):
        module = open_frozen(stage.model_path(model.source), model.scalar, model.dtype, expert_kernels(config))
    if isinstance(module, PolicyModule):
        module.temperature = model.temperature
    wrapped = sharing.frozen(module)
    wrapped.eval()
    if model.window is not None:
        vocabulary, window = int(module.model.config.get_text_config().vocab_size), model.window
        examples = [_foreign(example, vocabulary, window) for example in examples]
    device = sharing.accelerator.device
    return Reader.of(wrapped, batcher_of(stage, config, module, examples, model.pad, device, wrapped, share))


def open_frozen(
    folder: Path, scalar: bool, dtype: torch.dtype, kernels: Mapping[str, str]
) -> PolicyModule | RewardModule:
    """A model in eval mode that takes no gradient, its adapters merged. `scalar`: one with one number for its head.
    `kernels`: of its experts, as for the model that it is compared with."""
    if scalar:
        check_gives_rewards(folder)
    check_safe(folder)
    options: dict[str, Any] = {"dtype": dtype, "use_safetensors": True, "trust_remote_code": False, **kernels}
    kind = AutoModelForSequenceClassification if scalar else AutoModelForCausalLM
    model = load_weights(kind, folder, **options)
    if is_adapter(folder):
        merge(model)
    model.requires_grad_(False).eval()
    model.config.use_cache = False
    model.get_input_embeddings().register_forward_hook(follow_autocast)
    return RewardModule(model) if scalar else PolicyModule(model)


def _foreign(example: Example, vocabulary: int, window: int) -> Example:
    """Any tokens that a model of so many, and so long a window, can read: to find out how it may be read."""
    prompt = example.prompt[: window // 2] % vocabulary
    responses = tuple(response[: window // 2] % vocabulary for response in example.responses)
    return replace(example, prompt=prompt, responses=responses, prompt_supervised=None)
