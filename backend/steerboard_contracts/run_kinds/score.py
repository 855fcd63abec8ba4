"""A reward model scores a dataset."""

from __future__ import annotations

from steerboard_contracts.configs.score import ScoreConfig
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import datasets, models
from steerboard_contracts.specs.work import rows_of

SPEC = RunKindSpec(
    run="score",
    title="Score",
    about="Give every row of a dataset a reward.",
    config=ScoreConfig,
    slots={"data": datasets("instructions", "labelled"), "reward": models("reward")},
    makes="labelled",
    makes_thing="dataset",
    form=("engine",),
    stage="score",
    resumes="rows",
    shared_cost=True,
    work=rows_of("data"),
    pass_tokens="batch_tokens",
    place=20,
)
