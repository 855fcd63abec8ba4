"""Models that learn in the same steps as the one that training is for, such as a critic."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from steerboard_contracts.errors import BadInput
from steerboard_contracts.methods import needed_method
from steerboard_contracts.training import TrainingConfig
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.modules import JointModule, PolicyModule, RewardModule
from steerboard_workers.stages.distributed.strategies import Strategy
from steerboard_workers.stages.models.tokens import check_tokenizer
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.setup import Setup, batcher_of, open_model


def source_of(stage: Stage, config: TrainingConfig, name: str, tokenizer: Any) -> str:
    """The input that a trained model starts from. `tokenizer`: of the main model; a frozen model that reads other
    tokens scores texts, and no model that learns with the main one can start from it."""
    like = next((trained.like for trained in needed_method(config.method).also_trains if trained.role == name), None)
    if stage.has_input(name):
        return name
    if like is None or not stage.has_input(like):
        return JointModule.MAIN
    try:
        check_tokenizer(stage, like, tokenizer)
    except BadInput as error:
        if error.code != "tokenizer_differs":
            raise
        return JointModule.MAIN
    return like


def open_further(stage: Stage, config: TrainingConfig, start: Setup, sharing: Strategy) -> dict[str, Setup]:
    """The models that the method trains, by role, in addition to its main model. Raises `BadInput`
    (`tokenizer_differs`, ...)."""
    setups: dict[str, Setup] = {}
    for trained in needed_method(config.method).also_trains:
        if trained.required:
            stage.model(trained.role)  # raises
        source = source_of(stage, config, trained.role, start.tokenizer)
        if source == JointModule.MAIN and trained.like is not None and stage.has_input(trained.like):
            stage.log(
                f"{stage.model(trained.like).name} has another tokenizer than the model to train: the {trained.role} "
                "starts from the latter, with a new head",
                "warning",
            )
        if source != JointModule.MAIN:
            check_tokenizer(stage, source, start.tokenizer)
        with stage.phases.measure("load"), sharing.loading(), stage.using_model(source, "opening"):
            setups[trained.role] = open_model(
                stage.model_path(source), config, sharing.dtype, sharing.accelerator.device, also=trained
            )
    return setups


def batcher_for_all(
    stage: Stage,
    config: TrainingConfig,
    parts: Mapping[str, PolicyModule | RewardModule],
    examples: list[Example],
    pad_id: int,
    sharing: Strategy,
    share: bool,
) -> Batcher:
    """The fastest way that the main model allows, where all others do, too; otherwise the plain one."""
    device = sharing.accelerator.device
    batchers: list[Batcher] = []
    for name, module in parts.items():
        forward = functools.partial(sharing.module, part=name) if len(parts) > 1 else sharing.module
        batchers.append(batcher_of(stage, config, module, examples, pad_id, device, forward, share))
    first = batchers[0]
    if any((other.layout, other.share) != (first.layout, first.share) for other in batchers[1:]):
        return replace(first, layout="padded", share=False)
    return first
