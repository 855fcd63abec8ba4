"""Opens what a training stage was given: the models that it trains and the rows in their tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.training import TrainingConfig
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.alignment.modules import JointModule, PolicyModule, RewardModule, without_dropout
from steerboard_workers.alignment.training_method import TrainingMethod
from steerboard_workers.stages.distributed.choice import strategy_of
from steerboard_workers.stages.distributed.strategies import Strategy
from steerboard_workers.stages.models.model_io import check_safe, read_info
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.data import TrainingData, load_data, load_further
from steerboard_workers.stages.training.experts import Experts
from steerboard_workers.stages.training.further import open_further
from steerboard_workers.stages.training.setup import Setup, open_model


@dataclass
class Opened:
    """`further`: by role, the models that learn in the same steps as `start`; `further_data`: by name, the datasets of
    a method that reads several; `modules`: all models that learn, under `JointModule.MAIN` and their roles."""

    config: TrainingConfig
    method: TrainingMethod[Any]
    sharing: Strategy
    start: Setup
    further: dict[str, Setup]
    data: TrainingData
    further_data: dict[str, TrainingData]
    modules: dict[str, PolicyModule | RewardModule] = field(default_factory=dict)
    experts: Experts = field(init=False)
    # Counted before the training: what is saved may have merged its adapters.
    parameters: dict[str, int] = field(default_factory=dict)

    @property
    def module(self) -> PolicyModule | RewardModule:
        return self.modules[JointModule.MAIN]

    @property
    def trained(self) -> dict[str, Setup]:
        return {JointModule.MAIN: self.start, **self.further}


def open_given(stage: Stage) -> Opened:
    """Raises `BadInput` where a model cannot be trained so, and what `load_data` does."""
    given = stage.spec.config
    assert isinstance(given, TrainingConfig)
    stage.progress(0, 1, "models", "loading")
    with stage.using_model("model", "opening"):
        check_safe(stage.model_path("model"))
        info = read_info(stage.model_path("model"))
    config = given.for_start(info.template, info.condition)
    method = training_of(config)
    sharing = strategy_of(config, stage.spec.device)
    device = sharing.accelerator.device
    if device.type == "cuda":
        stage.phases.settle = lambda: torch.cuda.synchronize(device)
    with stage.phases.measure("load"), sharing.loading(), stage.using_model("model", "opening"):
        start = open_model(stage.model_path("model"), config, sharing.dtype, device)
    further = open_further(stage, config, start, sharing)
    stage.progress(1, 1, "models", "loading")
    with stage.phases.measure("load"), stage.using_model("model", "tokenising with"):
        data = load_data(stage, method, start.renderer)
        further_data = load_further(stage, config, start.renderer)
    opened = Opened(config, method, sharing, start, further, data, further_data)
    _make_modules(stage, opened)
    return opened


def _make_modules(stage: Stage, opened: Opened) -> None:
    """Make one module of all models that learn, in the form that the strategy shares among its processes."""
    method = opened.method
    module = opened.start.module(method.temperature, method.needs_entropy)
    opened.modules = {JointModule.MAIN: module, **{role: setup.module() for role, setup in opened.further.items()}}
    models = {name: part.model for name, part in opened.modules.items()}
    opened.experts = Experts(models, opened.config, opened.sharing)
    if isinstance(opened.config, OnlineConfig) and opened.config.replays_routes and isinstance(module, PolicyModule):
        module.routers = opened.experts.mixtures[JointModule.MAIN].routers
    if not method.drops_out:
        had_some = [without_dropout(part) for part in opened.modules.values()]
        if any(had_some):
            stage.log(f"dropout is off: {opened.config.method} compares log-probs with those of passes that have none")
    with stage.phases.measure("load"):
        opened.sharing.share(JointModule(opened.modules) if opened.further else module, method.rates)
    opened.parameters = {"parameters": opened.start.parameters, "trainable_parameters": opened.start.trained}
