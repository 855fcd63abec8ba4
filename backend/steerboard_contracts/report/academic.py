"""What an academic run finds: the figures of lm-evaluation-harness, with a score for each item."""

from __future__ import annotations

import datetime as dt
from uuid import UUID

from pydantic import BaseModel

from steerboard_contracts.models import Ancestor
from steerboard_contracts.report.estimate import Estimate

# What the harness calls the two ways of GSM8K to read an answer.
_READINGS = {"strict-match": "strict", "flexible-extract": "flexible"}


class AcademicFigure(BaseModel):
    """A metric of a task, read by a filter. `name`: `strict`, `flexible`, `acc`, ...; `value` and `stderr` are the
    harness's own. `interval`: of the mean, null where the value is not a mean over items. `scores`: by item, in order;
    empty where there is no such mean, and in what the API gives."""

    name: str
    metric: str
    filter: str
    value: float
    stderr: float | None
    higher_is_better: bool | None = None
    interval: Estimate | None = None
    scores: list[int | float] = []


class AcademicTask(BaseModel):
    """A task, or a group of `parts` tasks. `items`: answered, `of` them all. `version`: the task's. `template`: whether
    the model was prompted by its chat template. `items_hash`: equal where the same items were prompted in the same
    way."""

    task: str
    version: str | None
    shots: int | None
    template: bool
    items: int
    of: int
    parts: int = 0
    items_hash: str
    figures: list[AcademicFigure]


class AcademicResult(BaseModel):
    """`harness`: the version of lm-evaluation-harness."""

    harness: str
    tasks: list[AcademicTask]


class AcademicDifference(BaseModel):
    """A figure less that of the model's ancestor on the same items, paired by item. `theirs`: the ancestor's value, of
    its run `run_id`."""

    vs: Ancestor
    model: str
    run_id: UUID
    figure: str
    theirs: float
    difference: Estimate


class AcademicRow(BaseModel):
    """A model's newest result of a task."""

    run_id: UUID
    ended_at: dt.datetime
    harness: str
    task: AcademicTask
    differences: list[AcademicDifference] = []


class EntrantAcademic(BaseModel):
    """The newest results of the model or endpoint that is an entrant of an evaluation."""

    entrant: str
    rows: list[AcademicRow]


def figure_names(keys: list[tuple[str, str]]) -> list[str]:
    """A name for each (metric, filter) of a task: `strict` and `flexible` for these two readings of its first metric,
    the metric's for what is read in one way only, else `METRIC:FILTER`."""
    readings = {metric: [filter_ for one, filter_ in keys if one == metric] for metric, _ in keys}
    names: list[str] = []
    for metric, filter_ in keys:
        short = _READINGS.get(filter_)
        alone = filter_ == "none" or len(readings[metric]) == 1
        name = short if short and short not in names else metric if alone and not short else f"{metric}:{filter_}"
        names.append(name)
    return names
