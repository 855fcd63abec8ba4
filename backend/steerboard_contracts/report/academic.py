"""What an academic run finds: the figures of lm-evaluation-harness, with a score for each item."""

from __future__ import annotations

import datetime as dt
from typing import Literal
from uuid import UUID

from pydantic import BaseModel

from steerboard_contracts.models import Ancestor
from steerboard_contracts.report.estimate import Estimate

Unlike = Literal["harness", "version", "shots", "template", "items", "prompts", "scoring"]

_UNLIKE: dict[Unlike, str] = {
    "harness": "another version of lm-evaluation-harness",
    "version": "another version of the task",
    "shots": "another number of shots",
    "template": "a chat template on one side only",
    "items": "other items or right answers",
    "prompts": "other prompts or generation options",
    "scoring": "other filters or metrics",
}
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
    the model was prompted by its chat template. Hashes: `items_hash` of the items and their right answers, `asked_hash`
    of the prompts, before a template, and how answers are generated, `scored_hash` of filters and metrics; the latter
    two are empty where nothing is known of them."""

    task: str
    version: str | None
    shots: int | None
    template: bool
    items: int
    of: int
    parts: int = 0
    items_hash: str
    asked_hash: str = ""
    scored_hash: str = ""
    figures: list[AcademicFigure]

    @property
    def whole(self) -> bool:
        """Whether all items were answered, rather than the first ones (`limit`)."""
        return self.items >= self.of


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


class AcademicMismatch(BaseModel):
    """An ancestor's results of the task, none of which can be compared: how the nearest one, of run `run_id`, is unlike
    the model's."""

    vs: Ancestor
    model: str
    run_id: UUID
    unlike: list[Unlike]

    @property
    def words(self) -> str:
        """`another number of shots, other filters or metrics`."""
        return ", ".join(_UNLIKE[name] for name in self.unlike)


class AcademicRow(BaseModel):
    """A model's newest result of a task: of all items, or else of the first ones (`task.items` of `task.of`)."""

    run_id: UUID
    ended_at: dt.datetime
    harness: str
    task: AcademicTask
    differences: list[AcademicDifference] = []
    not_compared: list[AcademicMismatch] = []


class EntrantAcademic(BaseModel):
    """The newest results of the model or endpoint that is an entrant of an evaluation."""

    entrant: str
    rows: list[AcademicRow]


def figure_names(keys: list[tuple[str, str]]) -> list[str]:
    """A name for each (metric, filter) of a task: `strict` and `flexible` for these two readings of its first metric,
    the metric's for what is read in one way only, else `METRIC:FILTER`."""
    readings = {metric: [filter_ for other, filter_ in keys if other == metric] for metric, _ in keys}
    names: list[str] = []
    for metric, filter_ in keys:
        short = _READINGS.get(filter_)
        alone = filter_ == "none" or len(readings[metric]) == 1
        name = short if short and short not in names else metric if alone and not short else f"{metric}:{filter_}"
        names.append(name)
    return names
