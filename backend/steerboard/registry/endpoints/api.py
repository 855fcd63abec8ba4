"""Endpoints over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, AccessTo, Db, audit, let_go
from steerboard.accounts.http.routes import Router, UnkeptRoute
from steerboard.platform.http.errors import problems
from steerboard.platform.security.secrets import Secrets
from steerboard.registry.endpoints import service as endpoints
from steerboard.registry.endpoints.schemas import (
    EndpointChange,
    EndpointCheck,
    EndpointCreate,
    EndpointModel,
    EndpointOut,
)
from steerboard.registry.tables import Endpoint, Model

router = Router(prefix="/endpoints", tags=["endpoints"])
_live = Router(route_class=UnkeptRoute)

Read = Annotated[Access, Depends(AccessTo("read"))]
Write = Annotated[Access, Depends(AccessTo("write"))]


@router.get("", responses=problems(404))
def list_endpoints(session: Db, access: Read) -> list[EndpointOut]:
    """All of them, by name."""
    return [_out(session, endpoint) for endpoint in endpoints.endpoints_of(session, access.project)]


@router.post("", status_code=201, responses=problems(404, 409))
def create_endpoint(request: Request, body: EndpointCreate, session: Db, access: Write) -> EndpointOut:
    """Register an endpoint. A private address that the operator has not allowed is refused. The server is not
    contacted; `check` does that."""
    endpoint = endpoints.create(session, request.app.state.settings, _secrets(request), access.project, body)
    detail = {"base_url": endpoint.base_url, "model": endpoint.model, "has_key": endpoint.api_key_sealed is not None}
    audit(session, access, "endpoint.create", f"endpoint {endpoint.name} {endpoint.id}", detail)
    return _out(session, endpoint)


@router.patch("/{endpoint}", responses=problems(404, 409))
def change_endpoint(request: Request, endpoint: str, body: EndpointChange, session: Db, access: Write) -> EndpointOut:
    """Change the given fields only. A new server needs its key again, so no key is sent to another server."""
    row = endpoints.get_endpoint(session, access.project, endpoint)
    endpoints.change(session, request.app.state.settings, _secrets(request), access.project, row, body)
    detail = body.model_dump(mode="json", exclude={"api_key"}, exclude_unset=True)
    if "api_key" in body.model_fields_set:
        detail["has_key"] = body.api_key is not None
    audit(session, access, "endpoint.change", f"endpoint {row.name} {row.id}", detail)
    return _out(session, row)


@router.delete("/{endpoint}", status_code=204, responses=problems(404, 409))
def delete_endpoint(endpoint: str, session: Db, access: Write) -> None:
    """Delete an endpoint and its key."""
    row = endpoints.get_endpoint(session, access.project, endpoint)
    endpoints.delete(session, row)
    audit(session, access, "endpoint.delete", f"endpoint {row.name} {row.id}")


@_live.post("/{endpoint}/check", responses=problems(404))
def check_endpoint(request: Request, endpoint: str, session: Db, access: Write) -> EndpointCheck:
    """Ask an endpoint for its models, for at most ten seconds. A failure is a normal response: `problem` describes
    it."""
    row = endpoints.get_endpoint(session, access.project, endpoint)
    let_go(session)
    return endpoints.check(request.app.state.settings, _secrets(request), row)


router.include_router(_live)


def _secrets(request: Request) -> Secrets:
    secrets: Secrets = request.app.state.secrets
    return secrets


def _out(session: Session, endpoint: Endpoint) -> EndpointOut:
    policy = session.get(Model, endpoint.policy_model_id) if endpoint.policy_model_id else None
    return EndpointOut(
        id=endpoint.id,
        name=endpoint.name,
        base_url=endpoint.base_url,
        model=endpoint.model,
        has_key=endpoint.api_key_sealed is not None,
        policy_model=EndpointModel(id=policy.id, name=policy.name) if policy else None,
        guides=endpoint.guides,
        created_at=endpoint.created_at,
    )
