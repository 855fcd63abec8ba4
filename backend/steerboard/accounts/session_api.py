"""Signing in, by link or password, and the session of a browser."""

from __future__ import annotations

import html
import re

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts import attempts, service, signing_in
from steerboard.accounts.schemas import PasswordChange, SessionOut, SessionProject, SignIn
from steerboard.accounts.tables import BrowserSession, Membership, Project, User
from steerboard.platform import roles
from steerboard.platform.access import SESSION_COOKIE, SignedIn
from steerboard.platform.credentials import secret_hash
from steerboard.platform.errors import Forbidden, Unauthenticated
from steerboard.platform.origins import is_surely_own, refuse_other_sites
from steerboard.platform.web import Caller, Db, audit, problems

system_router = APIRouter(tags=["session"])
root_router = APIRouter(tags=["session"])

_ASK = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Sign in to Steerboard</title></head>
<body><h1>Steerboard</h1>
<form method="post" action="{path}"><button>Sign in with this link</button></form></body></html>
"""


_USED = "/sign-in?problem=used_link"
# Pages of our own. Nothing that a browser could take for another host may follow a sign-in.
_PAGE = re.compile(r"/p/[\w.~%/-]+")


@root_router.get("/sign-in/{code}", status_code=303, response_class=RedirectResponse)
def sign_in(code: str, request: Request, session: Db) -> Response:
    """Trade the code of a sign-in link for a cookie. The code works once; a used one leads a browser to the
    dashboard's own page of signing in. `?back=/p/...` names the page to go to.

    A browser that comes from elsewhere, such as a chat or a hostile page, is asked first."""
    if _is_page(request) and not service.is_open(session, code):
        return RedirectResponse(_USED, status_code=303)
    if _is_page(request) and not is_surely_own(request):
        here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        page = _ASK.format(path=html.escape(here, quote=True))
        # The platform's `no-referrer` would make browsers hide the origin of the form.
        return HTMLResponse(page, headers={"Referrer-Policy": "same-origin", "Cache-Control": "no-store"})
    return _use_link(code, request, session)


@root_router.post("/sign-in/{code}", status_code=303, response_class=RedirectResponse)
def confirm_sign_in(code: str, request: Request, session: Db) -> Response:
    """The button of the page that asks."""
    refuse_other_sites(request)
    return _use_link(code, request, session)


@system_router.post("/session", responses=problems(429))
def sign_in_with_password(body: SignIn, request: Request, response: Response, session: Db) -> SessionOut:
    """The answer sets the cookie. Repeated failures have to wait: `Retry-After`, `retry_after_seconds`."""
    refuse_other_sites(request)
    user = signing_in.check_password(
        session,
        request.app.state.sessions,
        name=body.user,
        password=body.password.get_secret_value(),
        address=_address(request),
    )
    cookie, browser = service.start_session(session, user.id)
    _signed_in(request, response, session, cookie, browser)
    return _session_out(session, user, browser)


@system_router.get("/session")
def get_session(request: Request, session: Db, caller: SignedIn) -> SessionOut:
    """Who is signed in, and what they may do."""
    user, browser = _own_session(request, session, caller)
    return _session_out(session, user, browser)


@system_router.put("/session/password", responses=problems(429))
def set_password(body: PasswordChange, request: Request, session: Db, caller: SignedIn) -> SessionOut:
    """One's own. All other sessions of the person end, and so do unused sign-in links."""
    user, browser = _own_session(request, session, caller)
    signing_in.set_password(
        session,
        request.app.state.sessions,
        user.id,
        current=body.current.get_secret_value() if body.current else None,
        new=body.new.get_secret_value(),
        address=_address(request),
        keep=browser,
    )
    audit(session, caller, "password.set", f"user {user.name}")
    return _session_out(session, user, browser)


@system_router.delete("/session", status_code=204)
def sign_out(request: Request, response: Response, session: Db, caller: SignedIn) -> None:
    service.end_session(session, request.cookies.get(SESSION_COOKIE, ""))
    audit(session, caller, "session.end", caller.actor)
    response.delete_cookie(SESSION_COOKIE, httponly=True, samesite="lax")


def _is_page(request: Request) -> bool:
    """A browser asks for something to show, and not for JSON."""
    return "text/html" in request.headers.get("Accept", "")


def _use_link(code: str, request: Request, session: Session) -> Response:
    try:
        cookie, browser = service.use_sign_in_link(session, code)
    except Unauthenticated:
        if not _is_page(request):
            raise
        return RedirectResponse(_USED, status_code=303)
    back = request.query_params.get("back", "")
    response = RedirectResponse(back if _PAGE.fullmatch(back) else "/", status_code=303)
    _signed_in(request, response, session, cookie, browser)
    return response


def _signed_in(request: Request, response: Response, session: Session, cookie: str, browser: BrowserSession) -> None:
    """Set the cookie; the session that the browser had before ends."""
    service.end_session(session, request.cookies.get(SESSION_COOKIE, ""))
    response.set_cookie(
        SESSION_COOKIE,
        cookie,
        max_age=int(service.SESSION_LIFE.total_seconds()),
        httponly=True,
        samesite="lax",
        # In production also behind a proxy that does not say that it speaks TLS.
        secure=request.url.scheme == "https" or request.app.state.settings.environment == "production",
    )
    user = session.get_one(User, browser.user_id)
    audit(
        session,
        Caller(f"user:{user.name}", f"user:{user.id}", user.id, None, None),
        "session.create",
        f"user {user.name}",
    )


def _own_session(request: Request, session: Session, caller: Caller) -> tuple[User, BrowserSession]:
    """Raises `Forbidden` (`no_session`) for tokens."""
    cookie = request.cookies.get(SESSION_COOKIE)
    if cookie is None or caller.user_id is None or caller.token_scopes is not None:
        raise Forbidden("this is for browsers that signed in", code="no_session")
    browser = session.get_one(BrowserSession, secret_hash(cookie))
    return session.get_one(User, caller.user_id), browser


def _session_out(session: Session, user: User, browser: BrowserSession) -> SessionOut:
    mine = select(Project, Membership.role).join(Membership, Membership.project_id == Project.id)
    rows = session.execute(mine.where(Membership.user_id == user.id).order_by(Project.name)).all()
    return SessionOut(
        user=user.name,
        csrf_token=browser.csrf_token,
        has_password=user.password_hash is not None,
        may_create_projects="admin" in roles.allowed_outside([role for _, role in rows]),
        projects=[
            SessionProject(name=project.name, id=project.id, role=role, allows=sorted(roles.allowed(role)))
            for project, role in rows
        ],
    )


def _address(request: Request) -> str:
    return attempts.counted_address(request.client.host if request.client else None)
