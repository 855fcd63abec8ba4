"""Frozen models apart, as their process has them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.online_config import OnlineConfig
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.examples import Example
from steerboard_workers.stages.roles.alone import alone
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.frozen.model import FrozenModel, open_reader
from steerboard_workers.stages.training.passes import ForwardPasses, Reader

Values = NDArray[np.float32]


class FrozenUnit:
    """Holds all models of its role."""

    def __init__(self, stage: Stage, config: OnlineConfig) -> None:
        self._stage = stage
        self._config = config
        self._sharing = alone(stage, config)
        self._passes = ForwardPasses(self._sharing)
        self._readers: dict[str, Reader] = {}

    def add(self, model: FrozenModel, examples: list[Example], share: bool) -> Batcher:
        """How its examples are laid out."""
        reader = open_reader(self._stage, self._config, model, self._sharing, examples, share)
        self._readers[model.name] = reader
        return reader.batcher

    def read(self, name: str, parts: Sequence[list[Example]], labels: bool) -> list[Values]:
        return [values for _, values in self._passes.run(self._readers[name], parts, labels=labels)]
