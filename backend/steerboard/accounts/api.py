"""Projects and their tokens. Members, the audit log and sessions have files of their own."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

from fastapi import Depends, Query, Request
from sqlalchemy import select

from steerboard.accounts import audit_api, hub_tokens_api, members, members_api, oidc_api, service, session_api
from steerboard.accounts.access import Access, AccessTo, Caller, Db, SignedIn, SystemAccessTo, audit
from steerboard.accounts.http.routes import Router
from steerboard.accounts.schemas import (
    ProjectChange,
    ProjectCreate,
    ProjectOut,
    SignInLinkOut,
    TokenCreate,
    TokenCreated,
    TokenOut,
)
from steerboard.accounts.tables import ApiToken, Membership, Project
from steerboard.platform.http.errors import Forbidden, problems
from steerboard.platform.http.paging import Page, paginate

__all__ = ["root_router", "router", "system_router"]

router = Router()
router.include_router(members_api.router)
router.include_router(audit_api.router)
router.include_router(hub_tokens_api.router)
system_router = Router()
root_router = Router()
# First: a sign-in link has any code in the place of `oidc`.
root_router.include_router(oidc_api.root_router)
root_router.include_router(session_api.root_router)
system_router.include_router(session_api.system_router)
system_router.include_router(oidc_api.system_router)
system_router.include_router(audit_api.system_router)

Admin = Annotated[Access, Depends(AccessTo("admin"))]
Limit = Annotated[int, Query(ge=1, le=500)]


@router.get("/tokens", tags=["tokens"], responses=problems(404))
def list_tokens(session: Db, access: Admin, cursor: str | None = None, limit: Limit = 50) -> Page[TokenOut]:
    query = select(ApiToken).where(ApiToken.project_id == access.project.id)
    return paginate(session, query, ApiToken.id, TokenOut.model_validate, cursor=cursor, limit=limit)


@router.post("/tokens", tags=["tokens"], status_code=201, responses=problems(404, 409))
def create_token(body: TokenCreate, session: Db, access: Admin, caller: SignedIn) -> TokenCreated:
    """A token for this project. It is shown in this answer and never again. It is revoked when its maker is removed
    from the project, or may no longer do what it can."""
    life = dt.timedelta(days=body.expires_in_days) if body.expires_in_days else None
    token, secret = service.create_token(
        session,
        name=body.name,
        scopes=list(body.scopes),
        project_id=access.project.id,
        user_id=members.token_owner(session, caller, access.project, body.scopes),
        life=life,
    )
    audit(session, access, "token.create", f"token {token.name} {token.id}", {"scopes": token.scopes})
    return TokenCreated(**TokenOut.model_validate(token).model_dump(), token=secret)


@router.delete("/tokens/{token}", tags=["tokens"], responses=problems(404))
def revoke_token(token: str, session: Db, access: Admin) -> TokenOut:
    """Revoke a token by id or name. It stops working immediately."""
    revoked = service.revoke_token(session, access.project, token)
    audit(session, access, "token.revoke", f"token {revoked.name} {revoked.id}")
    return TokenOut.model_validate(revoked)


@router.get("", tags=["projects"], responses=problems(404))
def get_project(access: Annotated[Access, Depends(AccessTo())]) -> ProjectOut:
    return ProjectOut.model_validate(access.project)


@router.patch("", tags=["projects"], responses=problems(404, 409))
def rename_project(body: ProjectChange, session: Db, access: Admin) -> ProjectOut:
    """Rename a project. Its id and all links by id stay valid; its old name no longer resolves."""
    before = access.project.name
    project = service.rename_project(session, access.project, body.name)
    audit(session, access, "project.rename", f"project {project.name} {project.id}", {"from": before})
    return ProjectOut.model_validate(project)


@system_router.get("/projects", tags=["projects"])
def list_projects(session: Db, caller: SignedIn, cursor: str | None = None, limit: Limit = 50) -> Page[ProjectOut]:
    query = service.visible_projects(caller)
    return paginate(session, query, Project.id, ProjectOut.model_validate, cursor=cursor, limit=limit)


@system_router.post("/projects", tags=["projects"], status_code=201, responses=problems(409))
def create_project(
    body: ProjectCreate, request: Request, session: Db, caller: Annotated[Caller, Depends(SystemAccessTo("admin"))]
) -> ProjectOut:
    """Create a project; the caller becomes its owner."""
    fraction = body.held_out_fraction or request.app.state.settings.held_out_fraction
    project = service.create_project(session, body.name, fraction)
    if caller.user_id is not None:
        session.add(Membership(project_id=project.id, user_id=caller.user_id, role="owner"))
    access = Access(project, caller.actor, frozenset({"admin"}), caller.identity)
    audit(session, access, "project.create", f"project {project.name} {project.id}")
    session.refresh(project)
    return ProjectOut.model_validate(project)


@system_router.post("/sign-in-links", tags=["session"], status_code=201)
def create_sign_in_link(session: Db, caller: Annotated[Caller, Depends(SystemAccessTo("admin"))]) -> SignInLinkOut:
    """Create a sign-in link for the caller. `steerboard sign-in` prints it."""
    if caller.user_id is None:
        raise Forbidden("this token does not belong to a person, so it cannot be used to sign in", code="no_person")
    code, expires_at = service.create_sign_in_link(session, caller.user_id)
    audit(session, caller, "sign_in_link.create", f"user {caller.user_id}")
    return SignInLinkOut(path=f"/sign-in/{code}", expires_at=expires_at)
