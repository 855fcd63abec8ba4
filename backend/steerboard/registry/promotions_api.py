"""Promotions of models over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.platform.http.errors import problems
from steerboard.registry import promotions, service
from steerboard.registry.schemas import NamedRef, PromotionCreate, PromotionOut, RollBack

router = Router()


@router.post("/{model}/promotions", status_code=201, responses=problems(404))
def promote_model(
    model: str, body: PromotionCreate, session: Db, access: Annotated[Access, Depends(AccessTo("write"))]
) -> PromotionOut:
    """Move a model to a stage, or out of it. In production, it replaces the current model in the same call."""
    row = service.get_model(session, access.project, model)
    entry = promotions.promote(session, access.project, row, body.stage, body.note, access.actor)
    audit(session, access, "model.promote", row.name, {"stage": body.stage, "note": body.note})
    return promotions.promotion_out(entry, None)


@router.post("/{model}/roll-back", responses=problems(404, 409))
def roll_back_model(
    model: str, body: RollBack, session: Db, access: Annotated[Access, Depends(AccessTo("write"))]
) -> NamedRef:
    """Take a model out of production, and put back the one that it replaced, which is returned. 409
    `nothing_to_roll_back` where there is none."""
    row = service.get_model(session, access.project, model)
    former = promotions.roll_back(session, access.project, row, body.note, access.actor)
    audit(session, access, "model.roll_back", row.name, {"to": former.name, "note": body.note})
    return NamedRef(id=former.id, name=former.name)


@router.get("/{model}/promotions", responses=problems(404))
def list_promotions(
    model: str, session: Db, access: Annotated[Access, Depends(AccessTo("read"))]
) -> list[PromotionOut]:
    """The history of a model's stage, newest first."""
    return promotions.history(session, service.get_model(session, access.project, model))
