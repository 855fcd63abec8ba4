"""A reward model is checked on pairs, or on answers of which some are right."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.engine import WithEngine
from steerboard_contracts.fields import Count, Precision
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import datasets, models
from steerboard_contracts.specs.work import rows_of


class BenchmarkConfig(WithEngine):
    """A reward model scores both sides of every pair, or all answers to every prompt: how often is the right one above
    the wrong ones? With the sections of RewardBench, or the domains of RewardBench 2, where the data is theirs."""

    run: Annotated[Literal["benchmark"], Field(description="The kind of run.")] = "benchmark"
    batch_tokens: Annotated[
        Count, Field(description="Token budget of one forward pass, padding included; it changes no result.")
    ] = 8192
    precision: Annotated[
        Precision,
        Field(
            description="`auto`: bf16 on a GPU, fp32 on a CPU. Lower precision makes more ties, which are lost.",
            json_schema_extra={"source": "The score run's: the rewards are those that it would give"},
        ),
    ] = "fp32"


SPEC = RunKindSpec(
    run="benchmark",
    title="Benchmark",
    about="How often a reward model prefers the right answer; RewardBench and RewardBench 2.",
    config=BenchmarkConfig,
    slots={"reward": models("reward", "preference"), "pairs": datasets("preferences", "labelled")},
    form=("engine",),
    needs_field={"labelled": "group"},
    for_data=dict.fromkeys(("preferences", "labelled"), "Benchmark a reward model on it"),
    for_model={"reward": "Benchmark it", "preference": "Benchmark it"},
    resumes="rows",
    # Both sides of a pair.
    work=rows_of("pairs", times=2.0),
    result_version=2,
)
