"""A preference model compares the answers of an evaluation."""

from __future__ import annotations

from steerboard_contracts.configs.compare import CompareConfig
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import models

SPEC = RunKindSpec(
    run="compare",
    title="Compare",
    about="A preference model compares the answers of an evaluation.",
    config=CompareConfig,
    slots={"judge": models("preference")},
    makes=None,
    makes_thing=None,
    of_evaluation=True,
    stage="compare",
    evaluation_input="comparisons",
    resumes="rows",
)
