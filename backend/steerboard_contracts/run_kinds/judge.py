"""An LLM at an endpoint judges the answers of an evaluation."""

from __future__ import annotations

from steerboard_contracts.configs.judge import JudgeConfig
from steerboard_contracts.specs.run_kind import RunKindSpec

SPEC = RunKindSpec(
    run="judge",
    title="Judge",
    about="An LLM at an endpoint judges the answers of an evaluation.",
    config=JudgeConfig,
    slots={},
    makes=None,
    makes_thing=None,
    of_evaluation=True,
    asks_endpoint="always",
    resumes="verdicts",
)
