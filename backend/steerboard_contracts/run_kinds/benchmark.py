"""A reward model is checked on pairs, or on answers of which some are right."""

from __future__ import annotations

from steerboard_contracts.configs.benchmark import BenchmarkConfig
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import datasets, models
from steerboard_contracts.specs.work import rows_of

SPEC = RunKindSpec(
    run="benchmark",
    title="Benchmark",
    about="How often a reward model prefers the right answer; RewardBench and RewardBench 2.",
    config=BenchmarkConfig,
    slots={"reward": models("reward", "preference"), "pairs": datasets("preferences", "labelled")},
    makes=None,
    makes_thing=None,
    form=("engine",),
    needs_field={"labelled": "group"},
    for_data=dict.fromkeys(("preferences", "labelled"), "Benchmark a reward model on it"),
    for_model={"reward": "Benchmark it", "preference": "Benchmark it"},
    stage="benchmark",
    resumes="rows",
    # Both sides of a pair.
    work=rows_of("pairs", times=2.0),
    pass_tokens="batch_tokens",
    place=50,
)
