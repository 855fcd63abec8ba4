"""The config of a `train` run, by its method. Not where the methods are, whose names load in far less time."""

from __future__ import annotations

import operator
from functools import reduce
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from steerboard_contracts.methods import methods, needed_method
from steerboard_contracts.models import POLICIES
from steerboard_contracts.training import TrainingConfig


def _probes_fit(config: TrainingConfig) -> TrainingConfig:
    spec = needed_method(config.method)
    if config.probe is not None and spec.role not in POLICIES:
        raise ValueError(f"probe: a {spec.role} model writes no answers; leave it out")
    if config.probe is not None and config.probe.score is not None and spec.condition is None:
        raise ValueError(f"probe.score: policies of {spec.label} take no score; leave it out")
    return config


if TYPE_CHECKING:
    TrainConfig = TrainingConfig
else:
    TrainConfig = Annotated[
        reduce(operator.or_, (spec.config for spec in methods().values())),
        Field(discriminator="method"),
        AfterValidator(_probes_fit),
    ]
