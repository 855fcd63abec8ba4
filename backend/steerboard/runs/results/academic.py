"""What finished academic runs found about models, and how far that is from their base and SFT models.

A model is known by its content, so that the same weights under another name have the same results; a model at an
endpoint by the address and model that the run was made for (`PinnedEndpoint`), whatever the endpoint names now.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session, aliased

from steerboard.registry.tables import Model
from steerboard.runs.inputs import MAIN_MODEL
from steerboard.runs.tables import Run, RunInput, RunOutput
from steerboard_contracts.models import Ancestor
from steerboard_contracts.pinned_endpoint import PinnedEndpoint
from steerboard_contracts.report.academic import (
    AcademicDifference,
    AcademicFigure,
    AcademicMismatch,
    AcademicResult,
    AcademicRow,
    AcademicTask,
    Unlike,
)
from steerboard_statistics.benchmarks.academic import paired_difference

# Runs of a model that are looked at.
_MOST_RUNS = 100
_RUNS = (
    select(Run.id, Run.ended_at, RunOutput.document)
    .join(RunOutput, (RunOutput.run_id == Run.id) & (RunOutput.type == "academic"))
    # Whole ones first, or a hundred trials would hide them.
    .order_by(Run.config["limit"].astext.is_not(None), Run.id.desc())
    .limit(_MOST_RUNS)
)
_Results = Select[uuid.UUID, dt.datetime | None, dict[str, Any] | None]


@dataclass(frozen=True)
class _TaskResult:
    run_id: uuid.UUID
    ended_at: dt.datetime
    harness: str
    task: AcademicTask


def academic_of(session: Session, model: Model) -> list[AcademicRow]:
    """The newest result of each task, by name, with differences to the models that it comes from. One of all items is
    preferred to one of the first only."""
    newest = _newest(_results(session, model.project_id, model.artifact_hash))
    if not newest:
        return []
    others = [
        (kind, other, list(_results(session, other.project_id, other.artifact_hash)))
        for kind, other in _ancestors(session, model).items()
    ]
    rows = []
    for result in newest:
        row = _row(result)
        for kind, other, results in others:
            _compare(row, result, kind, other.name, results)
        rows.append(row)
    return rows


def academic_of_endpoint(session: Session, project_id: uuid.UUID, endpoint: PinnedEndpoint) -> list[AcademicRow]:
    """The results of an endpoint, without differences: nothing is known of what an endpoint's model comes from."""
    pin = {"pinned_endpoint": endpoint.model_dump(mode="json")}
    runs = _RUNS.where(Run.project_id == project_id, Run.config.contains(pin))
    return [_row(result) for result in _newest(_task_results(session, runs))]


def academic_by_hash(session: Session, project_id: uuid.UUID, hashes: Collection[str]) -> dict[str, list[AcademicRow]]:
    """Results by content hash, of the newest model that has it."""
    rows: dict[str, list[AcademicRow]] = {}
    models = select(Model).where(Model.project_id == project_id, Model.artifact_hash.in_(hashes)).order_by(Model.id)
    for model in session.scalars(models) if hashes else ():
        rows[model.artifact_hash] = academic_of(session, model)
    return rows


def without_scores(document: dict[str, object]) -> dict[str, object]:
    """A run's result as the API gives it: tens of thousands of scores are for comparing, not for reading."""
    result = AcademicResult.model_validate(document)
    return AcademicResult(harness=result.harness, tasks=[_shown(task) for task in result.tasks]).model_dump(mode="json")


def _ancestors(session: Session, model: Model) -> dict[Ancestor, Model]:
    """The nearest of each role among those that it was trained from."""
    ancestors: dict[Ancestor, Model] = {}
    latest: Model | None = model
    seen = set()
    while latest is not None and latest.parent_id is not None and latest.id not in seen:
        seen.add(latest.id)
        latest = session.get(Model, latest.parent_id)
        if latest is not None and latest.role in get_args(Ancestor):
            ancestors.setdefault(cast(Ancestor, latest.role), latest)
    return ancestors


def _results(session: Session, project_id: uuid.UUID, content_hash: str) -> Iterator[_TaskResult]:
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
    return _task_results(session, runs)


def _task_results(session: Session, runs: _Results) -> Iterator[_TaskResult]:
    for run_id, ended_at, document in session.execute(runs):
        assert ended_at is not None  # it has an output
        result = AcademicResult.model_validate(document)
        for task in result.tasks:
            yield _TaskResult(run_id, ended_at, result.harness, task)


def _newest(results: Iterator[_TaskResult]) -> list[_TaskResult]:
    """The newest result of each task, by name: of all items where there is one."""
    newest: dict[str, _TaskResult] = {}
    for result in results:
        known = newest.get(result.task.task)
        if known is None or (result.task.whole, result.run_id) > (known.task.whole, known.run_id):
            newest[result.task.task] = result
    return [result for _, result in sorted(newest.items())]


def _row(result: _TaskResult) -> AcademicRow:
    return AcademicRow(run_id=result.run_id, ended_at=result.ended_at, harness=result.harness, task=_shown(result.task))


def _compare(row: AcademicRow, ours: _TaskResult, vs: Ancestor, model: str, results: Sequence[_TaskResult]) -> None:
    """Compare with the newest result on the same items, asked and scored alike; or note what the nearest is unlike."""
    same_task = [result for result in results if result.task.task == ours.task.task]
    if not same_task:
        return
    nearest = min(same_task, key=lambda result: (len(_unlike(ours, result)), -result.run_id.int))
    unlike = _unlike(ours, nearest)
    if unlike:
        row.not_compared.append(AcademicMismatch(vs=vs, model=model, run_id=nearest.run_id, unlike=unlike))
    else:
        row.differences += _differences(ours.task, vs, model, nearest)


def _differences(ours: AcademicTask, vs: Ancestor, model: str, same: _TaskResult) -> Iterator[AcademicDifference]:
    others = {figure.name: figure for figure in same.task.figures}
    for figure in ours.figures:
        other = others.get(figure.name)
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


def _unlike(first: _TaskResult, other: _TaskResult) -> list[Unlike]:
    """What keeps two results of a task from being compared. Hashes that are empty say nothing."""
    ours, other_task = first.task, other.task
    differ: dict[Unlike, bool] = {
        "harness": first.harness != other.harness,
        "version": ours.version != other_task.version,
        "shots": ours.shots != other_task.shots,
        "template": ours.template != other_task.template,
        "items": ours.items_hash != other_task.items_hash,
        "scoring": ours.scored_hash != other_task.scored_hash or not ours.scored_hash,
    }
    # With any of these the prompts are others in any case.
    explained = differ["shots"] or differ["template"] or differ["items"]
    differ["prompts"] = not explained and (ours.asked_hash != other_task.asked_hash or not ours.asked_hash)
    return [name for name, is_so in differ.items() if is_so]


def _shown(task: AcademicTask) -> AcademicTask:
    figures: list[AcademicFigure] = [figure.model_copy(update={"scores": []}) for figure in task.figures]
    return task.model_copy(update={"figures": figures})
