"""A reward model is checked on pairs."""

from __future__ import annotations

from steerboard_contracts.configs import BenchmarkConfig
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import datasets, models

SPEC = RunKindSpec(
    run="benchmark",
    title="Benchmark",
    about="How often a reward model prefers the chosen answer; RewardBench's sections.",
    config=BenchmarkConfig,
    slots={"reward": models("reward", "preference"), "pairs": datasets("preferences")},
    makes=None,
    makes_thing=None,
    form=("engine",),
    for_data={"preferences": "Benchmark a reward model on it"},
    for_model={"reward": "Benchmark it", "preference": "Benchmark it"},
    place=50,
)
