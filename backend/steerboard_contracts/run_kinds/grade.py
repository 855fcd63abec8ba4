"""A program that knows how good an answer is gives rewards."""

from __future__ import annotations

from steerboard_contracts.configs.grade import GradeConfig
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import datasets
from steerboard_contracts.specs.work import rows_of

SPEC = RunKindSpec(
    run="grade",
    title="Grade",
    about="Give every row of a dataset a reward by a program that knows it, such as how positive its text is.",
    config=GradeConfig,
    slots={"data": datasets("instructions", "labelled")},
    makes="labelled",
    makes_thing="dataset",
    form=("quality", "noise"),
    stage="grade",
    shared_cost=True,
    work=rows_of("data"),
    place=21,
)
