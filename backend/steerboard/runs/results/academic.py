"""What finished academic runs found about models, and how far that is from their base and SFT models.

A model is known by its content, so that the same weights under another name have the same results.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session, aliased

from steerboard.registry.tables import Endpoint, Model
from steerboard.runs.inputs import MAIN_MODEL
from steerboard.runs.tables import Run, RunInput, RunOutput
from steerboard_contracts.models import Ancestor
from steerboard_contracts.report.academic import (
    AcademicDifference,
    AcademicFigure,
    AcademicResult,
    AcademicRow,
    AcademicTask,
)
from steerboard_statistics.benchmarks.academic import paired_difference

# Runs of a model that are looked at.
_MOST_RUNS = 100
_RUNS = (
    select(Run.id, Run.ended_at, RunOutput.document)
    .join(RunOutput, (RunOutput.run_id == Run.id) & (RunOutput.type == "academic"))
    .order_by(Run.id.desc())
    .limit(_MOST_RUNS)
)
_Results = Select[uuid.UUID, dt.datetime | None, dict[str, Any] | None]


@dataclass(frozen=True)
class _Found:
    run_id: uuid.UUID
    ended_at: dt.datetime
    harness: str
    task: AcademicTask


def academic_of(session: Session, model: Model) -> list[AcademicRow]:
    """The newest result of each task, by name, with differences to the models that it comes from."""
    newest = _newest(_results(session, model.project_id, model.artifact_hash))
    if not newest:
        return []
    others = [
        (kind, other, list(_results(session, other.project_id, other.artifact_hash)))
        for kind, other in _ancestors(session, model).items()
    ]
    return [
        _row(
            one,
            [
                difference
                for kind, other, results in others
                for difference in _differences(one.task, kind, other.name, results)
            ],
        )
        for one in newest
    ]


def academic_of_endpoint(session: Session, endpoint: Endpoint) -> list[AcademicRow]:
    """Likewise, without differences: nothing is known of what an endpoint's model comes from. Runs name it by its id or
    by the name that it has now."""
    names = (endpoint.name, str(endpoint.id))
    runs = _RUNS.where(Run.project_id == endpoint.project_id, Run.config["endpoint"].astext.in_(names))
    return [_row(one, []) for one in _newest(_found(session, runs))]


def academic_by_hash(session: Session, project_id: uuid.UUID, hashes: Collection[str]) -> dict[str, list[AcademicRow]]:
    """By content hash, of the newest model that has it."""
    found: dict[str, list[AcademicRow]] = {}
    models = select(Model).where(Model.project_id == project_id, Model.artifact_hash.in_(hashes)).order_by(Model.id)
    for model in session.scalars(models) if hashes else ():
        found[model.artifact_hash] = academic_of(session, model)
    return found


def without_scores(document: dict[str, object]) -> dict[str, object]:
    """A run's result as the API gives it: tens of thousands of scores are for comparing, not for reading."""
    result = AcademicResult.model_validate(document)
    return AcademicResult(harness=result.harness, tasks=[_shown(task) for task in result.tasks]).model_dump(mode="json")


def _ancestors(session: Session, model: Model) -> dict[Ancestor, Model]:
    """The nearest of each role among those that it was trained from."""
    found: dict[Ancestor, Model] = {}
    latest: Model | None = model
    seen = set()
    while latest is not None and latest.parent_id is not None and latest.id not in seen:
        seen.add(latest.id)
        latest = session.get(Model, latest.parent_id)
        if latest is not None and latest.role in get_args(Ancestor):
            found.setdefault(cast(Ancestor, latest.role), latest)
    return found


def _results(session: Session, project_id: uuid.UUID, content_hash: str) -> Iterator[_Found]:
    """Every task of its runs, the newest first. In a pipeline the model goes in as the output of a stage."""
    given, made = aliased(RunInput), aliased(RunOutput)
    runs = (
        _RUNS.join(given, (given.run_id == Run.id) & (given.name == MAIN_MODEL))
        .outerjoin(
            made,
            (made.run_id == given.upstream_run_id) & (made.name == func.coalesce(given.upstream_output, MAIN_MODEL)),
        )
        .join(Model, Model.id == func.coalesce(given.model_id, made.model_id))
        .where(Run.project_id == project_id, Model.artifact_hash == content_hash)
    )
    return _found(session, runs)


def _found(session: Session, runs: _Results) -> Iterator[_Found]:
    for run_id, ended_at, document in session.execute(runs):
        assert ended_at is not None  # it has an output
        result = AcademicResult.model_validate(document)
        for task in result.tasks:
            yield _Found(run_id, ended_at, result.harness, task)


def _newest(results: Iterator[_Found]) -> list[_Found]:
    """Of each task, by name; the results are the newest first."""
    newest: dict[str, _Found] = {}
    for one in results:
        newest.setdefault(one.task.task, one)
    return [one for _, one in sorted(newest.items())]


def _row(one: _Found, differences: list[AcademicDifference]) -> AcademicRow:
    return AcademicRow(
        run_id=one.run_id, ended_at=one.ended_at, harness=one.harness, task=_shown(one.task), differences=differences
    )


def _differences(
    ours: AcademicTask, vs: Ancestor, model: str, results: Sequence[_Found]
) -> Iterator[AcademicDifference]:
    """With the newest result on the same items, asked in the same way."""
    same = next((one for one in results if _way(one.task) == _way(ours)), None)
    if same is None:
        return
    theirs = {figure.name: figure for figure in same.task.figures}
    for figure in ours.figures:
        other = theirs.get(figure.name)
        if other is None or not figure.scores or len(figure.scores) != len(other.scores):
            continue
        yield AcademicDifference(
            vs=vs,
            model=model,
            run_id=same.run_id,
            figure=figure.name,
            theirs=other.value,
            difference=paired_difference(figure.scores, other.scores),
        )


def _way(task: AcademicTask) -> tuple[object, ...]:
    return task.task, task.version, task.shots, task.template, task.items_hash


def _shown(task: AcademicTask) -> AcademicTask:
    figures: list[AcademicFigure] = [figure.model_copy(update={"scores": []}) for figure in task.figures]
    return task.model_copy(update={"figures": figures})
