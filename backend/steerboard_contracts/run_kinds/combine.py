"""Several rewards of the same answers become one."""

from __future__ import annotations

from steerboard_contracts.configs.combine import CombineConfig
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import datasets
from steerboard_contracts.specs.work import rows_of

SPEC = RunKindSpec(
    run="combine",
    title="Combine rewards",
    about="Add up several rewards of the same answers by weight, each z-scored over its labelled dataset.",
    config=CombineConfig,
    slots={"data": datasets("labelled", many=True)},
    makes="labelled",
    makes_thing="dataset",
    lists={"weights": "data"},
    form=("weights",),
    for_data={"labelled": "Combine with other rewards of the same answers"},
    stage="combine",
    work=rows_of("data.0"),
    place=22,
)
