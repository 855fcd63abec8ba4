"""Keeps some of several answers to each prompt."""

from __future__ import annotations

from steerboard_contracts.configs.select import KEPT_AS, SelectConfig
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import datasets, models
from steerboard_contracts.specs.work import rows_of

SPEC = RunKindSpec(
    run="select",
    title="Select",
    about="Of several answers to each prompt, keep the best, the best and the worst, or all by weight.",
    config=SelectConfig,
    slots={
        "data": datasets("instructions", "labelled", many=True),
        "judge": models("preference", required=False),
    },
    without={"judge": {"data": datasets("labelled", many=True)}},
    makes=KEPT_AS["best"],
    makes_thing="dataset",
    makes_by=("keep", {keep: str(kind) for keep, kind in KEPT_AS.items()}),
    lists={"weights": "data"},
    needs_field=dict.fromkeys(("instructions", "labelled"), "group"),
    form=("keep", "weights", "penalty", "scale", "opponents"),
    for_data=dict.fromkeys(("instructions", "labelled"), "Select among several answers per prompt"),
    for_model={"preference": "Select answers by it"},
    stage="select",
    # Comparisons are kept, and choosing by rewards takes a moment.
    resumes="rows",
    resumes_with="judge",
    shared_cost=True,
    work=rows_of("data.0"),
    pass_tokens="batch_tokens",
    place=25,
)
