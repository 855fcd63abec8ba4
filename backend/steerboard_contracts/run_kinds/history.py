"""The metrics of a run that another trainer made, to compare with runs of the platform."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import Config
from steerboard_contracts.specs.run_kind import RunKindSpec

Setting = str | int | float | bool | None


class HistoryConfig(Config):
    """Nothing is run: the endpoint that reads `file` keeps its metrics, and what the file knows of its `settings`."""

    run: Literal["history"] = "history"
    format: Literal["trainer_state", "table"]
    file: Annotated[str, Field(max_length=255)]
    settings: dict[str, Setting] = Field(default_factory=dict)


SPEC = RunKindSpec(
    run="history",
    title="Imported history",
    about="Keep the metrics of a run that another trainer made.",
    config=HistoryConfig,
    slots={},
)
