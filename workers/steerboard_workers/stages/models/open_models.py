"""Models of a stage's inputs, opened by the engine that its config names. One is open at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from steerboard_contracts.decoding import WithDecoding
from steerboard_contracts.engine import VllmOptions, WithEngine
from steerboard_contracts.errors import BadInput
from steerboard_contracts.fields import Precision
from steerboard_contracts.models import Aggregate, ModelInfo, ProcessReward
from steerboard_contracts.watching.warnings import no_native_bf16
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.engines.answers import end_ids
from steerboard_workers.engines.protocol import Engine
from steerboard_workers.engines.rewards import RewardEngine
from steerboard_workers.engines.vllm.host import VllmHost
from steerboard_workers.engines.vllm.watchdog import GiveUp
from steerboard_workers.stages.models.adapters import BASE, is_adapter, trains_tokens
from steerboard_workers.stages.models.model_io import (
    check_gives_rewards,
    check_safe,
    load_policy,
    load_reward_model,
    load_tokenizer,
    multiplies_bf16,
    pick_device,
    pick_dtype,
    read_info,
    renderer_of,
)
from steerboard_workers.stages.models.scoring import reward_engine
from steerboard_workers.stages.runtime import Stage

# Sequences that vLLM scores together, as far as its own budget of tokens goes.
SCORED_TOGETHER = 256


@dataclass(frozen=True)
class OpenPolicy:
    engine: Engine
    info: ModelInfo
    renderer: Renderer


@contextmanager
def open_policy(stage: Stage, name: str, config: WithDecoding) -> Iterator[OpenPolicy]:
    """The model of input `name`, ready to generate. Raises what loading it raises."""
    stage.progress(0, 1, "models", "loading")
    folder = stage.model_path(name)
    if config.engine == "transformers":
        from steerboard_workers.engines.transformers_engine import TransformersEngine

        with stage.phases.measure("load"), stage.using_model(name, "opening"):
            policy = load_policy(folder, config.precision, stage.spec.device)
        if policy.model.dtype is torch.bfloat16 and not multiplies_bf16(policy.device):
            stage.log(no_native_bf16().message, "warning")
        _watch(stage, name, policy.renderer)
        yield OpenPolicy(
            TransformersEngine(policy.model, policy.renderer, policy.device, config.batch_size),
            policy.info,
            policy.renderer,
        )
        return
    from steerboard_workers.engines.vllm.engine import VllmEngine

    guided = config.decoding.guided
    # Each guided answer has two sequences.
    sequences = config.batch_size * (2 if guided else 1)
    with _vllm(stage, name, config, "generate", config.precision, sequences, guided) as (host, renderer, info):
        yield OpenPolicy(VllmEngine(host, renderer, end_ids(renderer, own_ends(folder))), info, renderer)


@contextmanager
def open_reward_model(
    stage: Stage, name: str, config: WithEngine, precision: Precision, aggregate: Aggregate | None = None
) -> Iterator[RewardEngine]:
    """The reward model of input `name`. `aggregate`: of a process reward model, in place of its own. Raises what
    loading it raises, and `BadInput` (`wrong_role`) for an `aggregate` of a model without steps."""
    stage.progress(0, 1, "models", "loading")
    folder = stage.model_path(name)
    if config.engine == "transformers":
        with stage.phases.measure("load"), stage.using_model(name, "opening"):
            loaded = load_reward_model(folder, precision, stage.spec.device)
        _watch(stage, name, loaded.renderer)
        if aggregate is not None:
            loaded.renderer.process = _aggregated(stage, name, loaded.renderer.process, aggregate)
        yield reward_engine(loaded, stage.log)
        return
    from steerboard_workers.engines.vllm.rewards import VllmRewards

    with _vllm(stage, name, config, "score", precision, SCORED_TOGETHER) as (host, renderer, _):
        yield VllmRewards(host, renderer)


def _aggregated(stage: Stage, name: str, process: ProcessReward | None, aggregate: Aggregate) -> ProcessReward:
    if process is None:
        raise BadInput(
            f"{stage.model(name).name} is no process reward model: it has one reward for an answer, and none of its "
            f"steps for aggregate {aggregate}",
            code="wrong_role",
            hint="Leave `aggregate` out, or score by a process reward model.",
        )
    return process.model_copy(update={"aggregate": aggregate})


@contextmanager
def _vllm(
    stage: Stage,
    name: str,
    config: WithEngine,
    task: Literal["generate", "score"],
    precision: Precision,
    sequences: int,
    guided: bool = False,
) -> Iterator[tuple[VllmHost, Renderer, ModelInfo]]:
    with stage.phases.measure("load"):
        host, renderer, info = _started(stage, name, config, task, precision, sequences, guided)
    yield host, renderer, info
    # Not after a failure: what failed may hang, and the process ends anyway.
    host.close()


def _started(
    stage: Stage,
    name: str,
    config: WithEngine,
    task: Literal["generate", "score"],
    precision: Precision,
    sequences: int,
    guided: bool,
) -> tuple[VllmHost, Renderer, ModelInfo]:
    folder = stage.model_path(name)
    with stage.using_model(name, "opening"):
        check_safe(folder)
        if task == "score":
            check_gives_rewards(folder)
        info = read_info(folder)
        tokenizer = load_tokenizer(folder)
    if info.process is not None:
        raise BadInput(
            f"{stage.model(name).name} is a process reward model, which is read at the end of every step, and vLLM "
            "reads a sequence at its end alone",
            code="engine_refused",
            hint="Use engine: transformers.",
        )
    if is_adapter(folder) and task == "score":
        raise BadInput(
            f"{stage.model(name).name} is an adapter with a reward head of its own, which vLLM does not read",
            code="engine_refused",
            hint="Use engine: transformers, or train with the adapter merged.",
        )
    unread = "tokens of its own" if is_adapter(folder) and trains_tokens(folder) else None
    unread = "DoRA's norms" if info.lora is not None and info.lora.dora else unread
    if unread is not None:
        raise BadInput(
            f"{stage.model(name).name} is an adapter with {unread}, which vLLM does not read",
            code="engine_refused",
            hint="Use engine: transformers, or train with the adapter merged.",
        )
    window = min(info.max_length, config.vllm.max_model_len or info.max_length)
    renderer = renderer_of(tokenizer, info, window)
    _watch(stage, name, renderer)
    host = vllm_host(
        folder,
        info,
        task=task,
        precision=precision,
        window=window,
        sequences=sequences,
        options=config.vllm,
        device=stage.spec.device,
        give_up=stage.give_up,
        guided=guided,
    )
    return host, renderer, info


def vllm_host(
    folder: Path,
    info: ModelInfo,
    *,
    task: Literal["generate", "score"],
    precision: Precision,
    window: int,
    sequences: int,
    options: VllmOptions,
    device: Literal["auto", "cpu", "cuda"],
    give_up: GiveUp,
    guided: bool = False,
) -> VllmHost:
    """vLLM's engine for a model's folder, whole or an adapter. Raises as `VllmHost` does."""
    where = pick_device(device)
    adapter = folder if is_adapter(folder) else None
    return VllmHost(
        folder / BASE if adapter else folder,
        adapter=adapter,
        rank=info.lora.rank if info.lora else 0,
        task=task,
        dtype="bfloat16" if pick_dtype(precision, where) == torch.bfloat16 else "float32",
        window=window,
        sequences=sequences,
        options=options,
        device="cuda" if where.type == "cuda" else "cpu",
        give_up=give_up,
        guided=guided,
    )


def _watch(stage: Stage, name: str, renderer: Renderer) -> None:
    """Distinguishes a tokenizer that hangs or crashes from a model that computes."""
    renderer.tokenising = lambda: stage.using_model(name, "tokenising with")


def own_ends(folder: Path) -> int | list[int] | None:
    """The model's own end tokens, where transformers would look for them."""
    file = folder / "generation_config.json"
    if not file.is_file():
        file = folder / "config.json"
    ends: int | list[int] | None = json.loads(file.read_bytes()).get("eos_token_id")
    return ends
