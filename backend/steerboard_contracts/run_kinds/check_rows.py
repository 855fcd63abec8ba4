"""A launch form has rows tokenised before the run that would learn them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import Config, Count
from steerboard_contracts.models import POLICIES, SCALARS
from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import TEXTS, datasets, models
from steerboard_contracts.train_config import TrainConfig
from steerboard_contracts.training import TrainingConfig

# The settings shared by all methods that decide which tokens a row has.
_DECIDE = {"max_length", "too_long", "template", "learn", "max_new_tokens"}


class CheckRowsConfig(Config):
    """Rows are tokenised as the training run would, at most `rows` of them, evenly spread. Nothing is trained."""

    run: Literal["check_rows"] = "check_rows"
    training: TrainConfig
    rows: Annotated[Count, Field(description="At most this many rows.")] = 1000


def row_check_of(config: TrainingConfig) -> CheckRowsConfig:
    """Equal for configs that give rows the same tokens."""
    shared = {*TrainingConfig.model_fields, *OnlineConfig.model_fields} - _DECIDE - {"method"}
    fields = config.model_dump(mode="json", exclude=shared)
    return CheckRowsConfig.model_validate({"training": {"run": config.run, **fields}})


SPEC = RunKindSpec(
    run="check_rows",
    title="Check rows",
    about="Count the rows that training would cut, leave out or refuse.",
    config=CheckRowsConfig,
    slots={"model": models(*POLICIES, *SCALARS), "data": datasets(*TEXTS)},
)
