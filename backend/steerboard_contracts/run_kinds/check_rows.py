"""A launch form has rows tokenised before the run that would learn them."""

from __future__ import annotations

from steerboard_contracts.configs.check_rows import CheckRowsConfig
from steerboard_contracts.models import POLICIES, SCALARS
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import TEXTS, datasets, models

SPEC = RunKindSpec(
    run="check_rows",
    title="Check rows",
    about="Count the rows that training would cut, leave out or refuse.",
    config=CheckRowsConfig,
    slots={"model": models(*POLICIES, *SCALARS), "data": datasets(*TEXTS)},
    makes=None,
    makes_thing=None,
    unlisted=True,
    stage="check_rows",
    place=90,
)
