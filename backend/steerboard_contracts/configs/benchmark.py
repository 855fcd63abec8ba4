"""The config of a `benchmark` run: a reward or preference model against pairs with known answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.engine import WithEngine
from steerboard_contracts.fields import Count, Precision


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


CONFIG = BenchmarkConfig
