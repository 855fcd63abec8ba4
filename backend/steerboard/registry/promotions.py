"""Which models a project uses: one policy and one reward model in `production`, and the candidates for it."""

from __future__ import annotations

from sqlalchemy import Select, func, select, text
from sqlalchemy.orm import Session, aliased

from steerboard.accounts.tables import Project
from steerboard.platform.events.log import emit
from steerboard.platform.http.errors import Conflict, NotFound
from steerboard.registry.schemas import ModelStage, NamedRef, PromotionOut
from steerboard.registry.tables import Model, ModelPromotion
from steerboard_contracts.errors import BadInput
from steerboard_contracts.models import JUDGES, POLICIES

# Each place holds one production model.
_PLACES = (tuple(sorted(POLICIES)), tuple(sorted(JUDGES)))
PRODUCTION = {"@production": _PLACES[0], "@production-reward": _PLACES[1]}
"""Aliases that work wherever a model is named, and the roles they allow."""


class NothingInProduction(NotFound):
    """`@production` or `@production-reward` was asked for, and no model was promoted."""

    code = "nothing_in_production"


class NothingToRollBack(Conflict):
    """The model took no one's place in production, or is not there."""

    code = "nothing_to_roll_back"
    title = "There is no previous production model"


def in_production(session: Session, project: Project, ref: str) -> Model:
    """The model that a key of `PRODUCTION` names now. Raises `NothingInProduction`."""
    model = session.scalar(_production(project, PRODUCTION[ref]))
    if model is None:
        raise NothingInProduction(
            f"no model is in production as {ref}",
            hint="Promote one: `steerboard models promote NAME --stage production`.",
        )
    return model


def promote(
    session: Session, project: Project, model: Model, stage: ModelStage | None, note: str, actor: str
) -> ModelPromotion:
    """Move `model` to `stage`; the model that was in production in its place leaves it.

    Raises `NotFound`, `BadInput` (`wrong_role`) for one that neither answers nor judges."""
    _take_turns(session, project)
    model = locked(session, model)
    former = None
    if stage == "production":
        place = next((roles for roles in _PLACES if model.role in roles), None)
        if place is None:
            raise BadInput(
                f"{model.name} is a {model.role}, which gives neither answers nor rewards",
                code="wrong_role",
                hint="Promote a model that answers, or a reward model.",
            )
        others = _production(project, place).where(Model.id != model.id)
        former = session.scalar(others.with_for_update(key_share=True).execution_options(populate_existing=True))
    if former is not None:
        _enter(session, former, None, f"replaced by {model.name}", actor, replaced_by=model)
        session.flush()  # the index allows one at a time
    entry = _enter(session, model, stage, note, actor)
    session.flush()
    session.refresh(entry)
    replaced = {"id": str(former.id), "name": former.name} if former else None
    payload = {"id": str(model.id), "name": model.name, "role": model.role, "stage": stage, "replaced": replaced}
    emit(session, project.id, "model.promoted", payload)
    return entry


def roll_back(session: Session, project: Project, model: Model, note: str, actor: str) -> Model:
    """Put the model into production again whose place `model` took there. Raises `NothingToRollBack`, `NotFound`."""
    _take_turns(session, project)
    model = locked(session, model)
    former = former_of(session, model)
    if former is None:
        raise NothingToRollBack(
            f"{model.name} replaced no other model in production"
            if model.stage == "production"
            else f"{model.name} is not in production",
            hint="Promote the model that should be there: `steerboard models promote NAME --stage production`.",
        )
    promote(session, project, former, "production", note or f"rolled back from {model.name}", actor)
    return former


def former_of(session: Session, model: Model) -> Model | None:
    """The model that a roll back from `model`, in production, returns to: the newest whose place it took. None where
    it took no one's. One that was promoted only later, and was rolled back from, is no former one."""
    if model.stage != "production":
        return None

    first = (
        select(ModelPromotion.model_id, func.min(ModelPromotion.created_at).label("at"))
        .where(ModelPromotion.project_id == model.project_id, ModelPromotion.stage == "production")
        .group_by(ModelPromotion.model_id)
        .subquery()
    )
    begun = select(first.c.at).where(first.c.model_id == model.id).scalar_subquery()
    return session.scalar(
        select(Model)
        .join(ModelPromotion, ModelPromotion.model_id == Model.id)
        .join(first, first.c.model_id == Model.id)
        .where(ModelPromotion.replaced_by_id == model.id, first.c.at < begun)
        .order_by(ModelPromotion.id.desc())
        .limit(1)
    )


def history(session: Session, model: Model) -> list[PromotionOut]:
    """Newest first."""
    successor = aliased(Model)
    rows = session.execute(
        select(ModelPromotion, successor)
        .outerjoin(successor, successor.id == ModelPromotion.replaced_by_id)
        .where(ModelPromotion.model_id == model.id)
        .order_by(ModelPromotion.id.desc())
    )
    return [promotion_out(entry, replaced_by) for entry, replaced_by in rows]


def promotion_out(entry: ModelPromotion, replaced_by: Model | None) -> PromotionOut:
    return PromotionOut.model_validate(
        {
            "id": entry.id,
            "stage": entry.stage,
            "note": entry.note,
            "actor": entry.actor,
            "created_at": entry.created_at,
            "replaced_by": NamedRef(id=replaced_by.id, name=replaced_by.name) if replaced_by else None,
        }
    )


def locked(session: Session, model: Model) -> Model:
    """The model as it is now; until the transaction ends no one promotes or deletes it. Raises `NotFound`."""
    row = session.scalar(
        select(Model)
        .where(Model.id == model.id)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    )
    if row is None:
        raise NotFound(f"model {model.name!r} was deleted a moment ago", code="unknown_model")
    return row


def _take_turns(session: Session, project: Project) -> None:
    """Concurrent promotions see each other's result."""
    session.execute(
        text("SELECT pg_advisory_xact_lock(hashtextextended('promotions of ' || :project, 0))"),
        {"project": str(project.id)},
    )


def _production(project: Project, roles: tuple[str, ...]) -> Select[Model]:
    return select(Model).where(Model.project_id == project.id, Model.stage == "production", Model.role.in_(roles))


def _enter(
    session: Session,
    model: Model,
    stage: ModelStage | None,
    note: str,
    actor: str,
    replaced_by: Model | None = None,
) -> ModelPromotion:
    model.stage = stage
    entry = ModelPromotion(
        project_id=model.project_id,
        model_id=model.id,
        stage=stage,
        note=note,
        actor=actor,
        replaced_by_id=replaced_by.id if replaced_by else None,
    )
    session.add(entry)
    return entry
