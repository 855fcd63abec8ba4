"""`/models` of OpenAI's API: what can be asked for chat completions, and fine-tuned."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from steerboard.accounts.access import Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.accounts.tables import Project
from steerboard.openai_api.dependencies import Read, Write
from steerboard.openai_api.errors import unsupported
from steerboard.platform.http.errors import NotFound
from steerboard.registry.endpoints.service import get_endpoint
from steerboard.registry.service import delete_model, get_model
from steerboard.registry.tables import Endpoint, Model
from steerboard_contracts.models import POLICIES

router = Router(prefix="/models")


@router.get("")
def openai_list_models(session: Db, access: Read) -> dict[str, Any]:
    """Models that write answers, then endpoints; the newest first."""
    query = select(Model).where(Model.project_id == access.project.id, Model.role.in_(POLICIES))
    models = session.scalars(query.order_by(Model.id.desc())).all()
    names = {model.name for model in models}
    served = select(Endpoint).where(Endpoint.project_id == access.project.id).order_by(Endpoint.id.desc())
    endpoints = [endpoint for endpoint in session.scalars(served) if endpoint.name not in names]
    listed: list[Model | Endpoint] = [*models, *endpoints]
    return {"object": "list", "data": [_out(each, access.project) for each in listed]}


@router.get("/{model}")
def openai_get_model(session: Db, access: Read, model: str) -> dict[str, Any]:
    try:
        return _out(get_model(session, access.project, model), access.project)
    except NotFound as error:
        try:
            return _out(get_endpoint(session, access.project, model), access.project)
        except NotFound:
            raise error from None


@router.delete("/{model}")
def openai_delete_model(session: Db, access: Write, model: str) -> dict[str, Any]:
    """A model of a run, that nothing else refers to."""
    row = get_model(session, access.project, model)
    if row.run_id is None or row.role not in POLICIES:
        raise unsupported("model", f"names {row.name!r}, which no run made; delete it in the dashboard")
    delete_model(session, row)
    audit(session, access, "model.delete", row.name)
    return {"id": model, "object": "model", "deleted": True}


def _out(thing: Model | Endpoint, project: Project) -> dict[str, Any]:
    return {
        "id": thing.name,
        "object": "model",
        "created": int(thing.created_at.timestamp()),
        "owned_by": project.name,
    }
