"""Tokens and events of a project; projects, sign-in and sessions outside of one."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import select

from steerboard.accounts import service
from steerboard.accounts.schemas import (
    ProjectCreate,
    ProjectOut,
    SessionOut,
    SignInLinkOut,
    TokenCreate,
    TokenCreated,
    TokenOut,
)
from steerboard.accounts.tables import ApiToken, BrowserSession, Membership, Project, User
from steerboard.platform.access import SESSION_COOKIE, SignedIn
from steerboard.platform.credentials import secret_hash
from steerboard.platform.errors import Forbidden
from steerboard.platform.web import Access, AccessTo, Caller, Db, Page, SystemAccessTo, audit, paginate, problems

router = APIRouter()
system_router = APIRouter()
root_router = APIRouter()

Admin = Annotated[Access, Depends(AccessTo("admin"))]
Limit = Annotated[int, Query(ge=1, le=500)]


@router.get("/tokens", tags=["tokens"], responses=problems(404))
def list_tokens(session: Db, access: Admin, cursor: str | None = None, limit: Limit = 50) -> Page[TokenOut]:
    found = select(ApiToken).where(ApiToken.project_id == access.project.id)
    return paginate(session, found, ApiToken.id, TokenOut.model_validate, cursor=cursor, limit=limit)


@router.post("/tokens", tags=["tokens"], status_code=201, responses=problems(404, 409))
def create_token(body: TokenCreate, session: Db, access: Admin) -> TokenCreated:
    """A token for this project. It is shown in this answer and never again."""
    life = dt.timedelta(days=body.expires_in_days) if body.expires_in_days else None
    token, secret = service.create_token(
        session, name=body.name, scopes=list(body.scopes), project_id=access.project.id, life=life
    )
    audit(session, access, "token.create", f"token {token.name} {token.id}", {"scopes": token.scopes})
    return TokenCreated(**TokenOut.model_validate(token).model_dump(), token=secret)


@router.delete("/tokens/{token}", tags=["tokens"], responses=problems(404))
def revoke_token(token: str, session: Db, access: Admin) -> TokenOut:
    """By id or name. It stops working with this answer."""
    revoked = service.revoke_token(session, access.project, token)
    audit(session, access, "token.revoke", f"token {revoked.name} {revoked.id}")
    return TokenOut.model_validate(revoked)


@router.get("", tags=["projects"], responses=problems(404))
def get_project(access: Annotated[Access, Depends(AccessTo("read"))]) -> ProjectOut:
    return ProjectOut.model_validate(access.project)


@system_router.get("/projects", tags=["projects"])
def list_projects(session: Db, caller: SignedIn, cursor: str | None = None, limit: Limit = 50) -> Page[ProjectOut]:
    found = service.visible_projects(caller)
    return paginate(session, found, Project.id, ProjectOut.model_validate, cursor=cursor, limit=limit)


@system_router.post("/projects", tags=["projects"], status_code=201, responses=problems(409))
def create_project(
    body: ProjectCreate, request: Request, session: Db, caller: Annotated[Caller, Depends(SystemAccessTo("admin"))]
) -> ProjectOut:
    """Its creator owns it."""
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
    """A link for the caller's own person. `steerboard sign-in` prints it."""
    if caller.user_id is None:
        raise Forbidden("this token belongs to no person, so it cannot sign one in", code="no_person")
    code, expires_at = service.create_sign_in_link(session, caller.user_id)
    audit(session, caller, "sign_in_link.create", f"user {caller.user_id}")
    return SignInLinkOut(path=f"/sign-in/{code}", expires_at=expires_at)


@root_router.get("/sign-in/{code}", tags=["session"], status_code=303, response_class=RedirectResponse)
def sign_in(code: str, request: Request, session: Db) -> RedirectResponse:
    """Trade the code of a sign-in link for a cookie. The code works once."""
    cookie, browser = service.use_sign_in_link(session, code)
    response = RedirectResponse("/", status_code=303)
    response.set_cookie(
        SESSION_COOKIE,
        cookie,
        max_age=int(service.SESSION_LIFE.total_seconds()),
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )
    user = session.get_one(User, browser.user_id)
    caller = Caller(f"user:{user.name}", f"user:{user.id}", user.id, None, None)
    audit(session, caller, "session.create", f"user {user.name}")
    return response


@system_router.get("/session", tags=["session"])
def get_session(request: Request, session: Db, caller: SignedIn) -> SessionOut:
    cookie = request.cookies.get(SESSION_COOKIE)
    if cookie is None or caller.user_id is None or caller.token_scopes is not None:
        raise Forbidden("this is for browsers that signed in with a link", code="no_session")
    browser = session.get_one(BrowserSession, secret_hash(cookie))
    return _session_out(session, session.get_one(User, caller.user_id), browser)


@system_router.delete("/session", tags=["session"], status_code=204)
def sign_out(request: Request, response: Response, session: Db, caller: SignedIn) -> None:
    service.end_session(session, request.cookies.get(SESSION_COOKIE, ""))
    audit(session, caller, "session.end", caller.actor)
    response.delete_cookie(SESSION_COOKIE, httponly=True, samesite="lax")


def _session_out(session: Db, user: User, browser: BrowserSession) -> SessionOut:
    mine = select(Project.name).join(Membership, Membership.project_id == Project.id)
    names = session.scalars(mine.where(Membership.user_id == user.id).order_by(Project.name))
    return SessionOut(user=user.name, csrf_token=browser.csrf_token, projects=list(names))
