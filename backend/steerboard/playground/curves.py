"""Control curves: which prompts, and how the API shows them. The interactive worker measures them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import ColumnElement, String, func, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.lookup import get_dataset, owner_of
from steerboard.datasets.tables import Dataset, SampleRow
from steerboard.platform.events.log import emit, wake
from steerboard.platform.http.errors import NotFound
from steerboard.platform.names import as_id, find
from steerboard.playground import columns
from steerboard.playground.claims import CHANNEL
from steerboard.playground.errors import AlreadyEnded, NoScores
from steerboard.playground.queue_position import Waiting
from steerboard.playground.schemas import (
    AnswerProblem,
    AnswerState,
    CurveIn,
    CurveOut,
    CurvePoint,
    CurveSplit,
    Named,
    PlaygroundDecoding,
)
from steerboard.playground.tables import Curve
from steerboard.registry.tables import Model
from steerboard.runs.results.lineage import lineage
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.methods import conditioned_labels


def create_curve(session: Session, project: Project, request: CurveIn, actor: str) -> Curve:
    """Queue a curve over prompts that are drawn now. Raises `NotFound`, `WrongRole`, `NoScores`, `EmptySelection`, and
    `BadInput` (`unknown_attribute`, and `missing_input` when the model's lineage knows no dataset)."""
    model = columns.policy(session, project, request.model)
    form = columns.condition_format(model)
    if form is None:
        raise NoScores(
            f"{model.name} was not trained with scores, so it has no control curve",
            hint=f"Choose a policy of {conditioned_labels()}.",
        )
    scores = [form.resolve(score) for score in request.scores]
    reward = columns.reward_model(session, project, request.reward)
    dataset = get_dataset(session, project, request.data) if request.data else _trained_on(session, model)
    prompts = _draw(session, dataset, request)
    curve = Curve(
        project_id=project.id,
        model_id=model.id,
        model_name=model.name,
        reward_model_id=reward.id,
        reward_model_name=reward.name,
        dataset_id=dataset.id,
        dataset_name=dataset.name,
        split=request.split,
        scores=[score.plain() for score in scores],
        prompt_limit=request.limit,
        prompts=prompts,
        decoding=request.decoding.model_dump(),
        seed=request.seed,
        state="queued",
        done=0,
        total=len(prompts) * len(request.scores),
        points=[],
        created_by=actor,
        attempt=0,
    )
    session.add(curve)
    session.flush()
    session.refresh(curve)
    wake(session, CHANNEL)
    announce(session, curve)
    return curve


def _trained_on(session: Session, model: Model) -> Dataset:
    """The nearest dataset upstream."""
    for node in lineage(session, model).nodes:
        if node.type == "dataset" and (dataset := session.get(Dataset, node.id)) is not None:
            return dataset
    raise BadInput(
        f"no training dataset is known for {model.name}",
        code="missing_input",
        hint="Name the prompts' dataset: `data`.",
    )


def _draw(session: Session, dataset: Dataset, request: CurveIn) -> list[Any]:
    """Distinct prompts of the split, at most `limit`, drawn by seed. Raises `EmptySelection`."""
    conditions: list[ColumnElement[bool]] = [SampleRow.dataset_id == owner_of(dataset)]
    if request.split != "all":
        conditions.append(SampleRow.held_out.is_(request.split == "held_out"))
    draw = func.md5(func.concat(SampleRow.prompt_hash.cast(String), f":{request.seed}"))
    rows = select(func.min(SampleRow.row)).where(*conditions).group_by(SampleRow.prompt_hash).order_by(draw)
    drawn = list(session.scalars(rows.limit(request.limit)))
    query = select(SampleRow.sample["prompt"]).where(conditions[0], SampleRow.row.in_(drawn)).order_by(SampleRow.row)
    prompts = list(session.scalars(query))
    if not prompts:
        raise EmptySelection(
            f"dataset {dataset.name} has no prompts in the split {request.split}",
            hint="Choose split `all`, or a dataset with more prompts.",
        )
    return prompts


def announce(session: Session, curve: Curve) -> None:
    """Tell the project's event stream. Late in a transaction: it locks the stream until the commit."""
    payload = {"id": str(curve.id), "state": curve.state, "done": curve.done, "total": curve.total}
    emit(session, curve.project_id, "playground.curve", payload)


def get_curve(session: Session, project: Project, ref: str) -> Curve:
    """The curve by id. Raises `NotFound`, also for another project's."""
    curve = find(session, select(Curve).where(Curve.project_id == project.id), Curve.id, None, ref)
    if curve is None:
        raise NotFound(f"there is no curve {ref!r}", hint="List them at playground/curves.")
    return curve


def cancel(session: Session, curve: Curve) -> None:
    """The points so far stay. Raises `AlreadyEnded`."""
    session.refresh(curve, with_for_update=True)
    if curve.ended_at is not None:
        raise AlreadyEnded("this curve has ended")
    curve.state, curve.waits_for, curve.lease_owner = "cancelled", None, None
    curve.ended_at = func.clock_timestamp()
    session.flush()
    announce(session, curve)
    wake(session, CHANNEL)


def curves_out(session: Session, curves: Sequence[Curve], lease_seconds: float) -> list[CurveOut]:
    waiting = Waiting(session, lease_seconds, curves)
    return [_out(curve, waiting) for curve in curves]


def _out(curve: Curve, waiting: Waiting) -> CurveOut:
    return CurveOut(
        id=curve.id,
        model=Named(id=curve.model_id, name=curve.model_name),
        reward_model=Named(id=curve.reward_model_id, name=curve.reward_model_name),
        dataset=Named(id=curve.dataset_id, name=curve.dataset_name),
        split=cast(CurveSplit, curve.split),
        scores=[Condition.model_validate(score) for score in curve.scores],
        limit=curve.prompt_limit,
        decoding=PlaygroundDecoding.model_validate(curve.decoding),
        seed=curve.seed,
        state=cast(AnswerState, curve.state),
        waits_for=waiting.of(curve, curve.waits_for) if curve.ended_at is None else None,
        done=curve.done,
        total=curve.total,
        points=[CurvePoint.model_validate(point) for point in curve.points],
        spearman=curve.spearman,
        error=AnswerProblem.model_validate(curve.error) if curve.error else None,
        created_at=curve.created_at,
    )


def model_filter(session: Session, project: Project, ref: str) -> uuid.UUID:
    """The model of `?model=`, which may have been deleted since."""
    return as_id(ref) or columns.policy(session, project, ref).id
