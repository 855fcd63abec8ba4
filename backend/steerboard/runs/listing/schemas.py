"""The API's schemas of the list of runs."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from steerboard.marks.schemas import Marks
from steerboard.runs.facts.tables import Source
from steerboard.runs.schemas.runs import RunSummary

_Name = Annotated[str, Field(min_length=1, max_length=210)]
Columns = Annotated[list[_Name], Field(max_length=40)]
Widths = Annotated[dict[_Name, Annotated[int, Field(ge=40, le=1000)]], Field(max_length=41)]


class KeyMetric(BaseModel):
    """The latest value of a metric."""

    name: str
    value: float


class RunRow(RunSummary):
    """`key_metric`: the first of the metrics that the method names as important (`first_metrics`) and the run has
    logged. `values`: those of the columns that were asked for, null where the run has none."""

    marks: Marks
    key_metric: KeyMetric | None
    values: dict[str, float | str | None]


class ColumnName(BaseModel):
    """What runs can be filtered by. `name` is what a filter calls it; `sortable` fields are columns too, and of a
    metric also `name.min`, `name.max` and, where `better` is known, `name.best`."""

    name: str
    source: Source | Literal["run"]
    about: str = ""
    numbers: bool
    sortable: bool
    better: Literal["low", "high"] | None = None


class ViewQuery(BaseModel):
    """What of the list a view shows. `columns`: settings, metrics and results next to the columns that every list has;
    a list that begins with `name` is all of them in their order. `widths`: of columns, in pixels."""

    model_config = ConfigDict(extra="forbid")

    filter: Annotated[str, Field(max_length=2000)] = ""
    sort: Annotated[str, Field(max_length=210)] = "-created"
    columns: Columns = []
    widths: Widths = {}


class ViewIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: ViewQuery


class View(BaseModel):
    id: uuid.UUID
    name: str
    query: ViewQuery
    created_by: str
    created_at: dt.datetime
