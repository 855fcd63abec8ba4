"""Signing in, by link or password, and the session of a browser."""

from __future__ import annotations

import html
import re

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts import attempts, roles, service, signing_in
from steerboard.accounts.access import Caller, Db, PerhapsSignedIn, SignedIn, audit
from steerboard.accounts.http.routes import Router
from steerboard.accounts.schemas import PasswordChange, SessionOut, SessionProject, SignIn
from steerboard.accounts.tables import BrowserSession, Membership, Project, User
from steerboard.platform.http.errors import Forbidden, Unauthenticated, problems
from steerboard.platform.http.origins import refuse_other_sites
from steerboard.platform.security.credentials import SESSION_COOKIE, secret_hash

system_router = Router(tags=["session"])
root_router = Router(tags=["session"])

_PAGE_OF_A_LINK = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><meta name="color-scheme" content="light dark"><title>Sign in · Steerboard</title>
<style>
body {{ font-family: system-ui, sans-serif; max-width: 24rem; margin: 18vh auto 0; padding: 0 1.5rem }}
button {{ font: inherit; font-weight: 600; padding: .6rem 1.4rem; border: 0; border-radius: .3rem; cursor: pointer;
  color: #fff; background: #0b7285 }}
</style></head>
<body><h1>Steerboard</h1><p>This link signs you in once.</p>
<form method="post" action="{path}"><button autofocus>Sign in</button></form></body></html>
"""
_USED = "/sign-in?problem=used_link"
# Pages of our own. Nothing that a browser could take for another host may follow a sign-in.
_PAGE = re.compile(r"/p/[\w.~%/-]+")


@root_router.get("/sign-in/{code}", response_class=HTMLResponse, responses=problems(401))
def show_sign_in(code: str, request: Request, session: Db) -> Response:
    """The page of a sign-in link, with the button that uses it. Opening the page does not use the link, since chats and
    mail scanners open links too. `?back=/p/...` names the page to go to afterwards."""
    if not service.is_open(session, code):
        return _link_used(request, service.used_link())
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    page = _PAGE_OF_A_LINK.format(path=html.escape(here, quote=True))
    # The platform's `no-referrer` would make browsers hide the origin of the form.
    return HTMLResponse(page, headers={"Referrer-Policy": "same-origin", "Cache-Control": "no-store"})


@root_router.post("/sign-in/{code}", status_code=303, response_class=RedirectResponse, responses=problems(401))
def use_sign_in(code: str, request: Request, session: Db) -> Response:
    """Trade the code of a sign-in link for a cookie. The code works once; a used one leads a browser to the dashboard's
    sign-in page."""
    refuse_other_sites(request)
    try:
        cookie, browser = service.use_sign_in_link(session, code)
    except Unauthenticated as error:
        return _link_used(request, error)
    response = RedirectResponse(own_page(request.query_params.get("back", "")), status_code=303)
    signed_in(request, response, session, cookie, browser)
    return response


def own_page(back: str) -> str:
    """The page to go to after a sign-in: `back`, where it is one of ours."""
    return back if _PAGE.fullmatch(back) else "/"


def _link_used(request: Request, error: Unauthenticated) -> Response:
    """A person gets a page, a program the problem."""
    if "text/html" not in request.headers.get("Accept", ""):
        raise error
    return RedirectResponse(_USED, status_code=303)


@system_router.post("/session", responses=problems(429))
def sign_in_with_password(body: SignIn, request: Request, response: Response, session: Db) -> SessionOut:
    """Sign in with a password; the response sets the cookie. Repeated failures must wait: `Retry-After`,
    `retry_after_seconds`."""
    refuse_other_sites(request)
    user = signing_in.check_password(
        session,
        request.app.state.sessions,
        name=body.user,
        password=body.password.get_secret_value(),
        address=_address(request),
    )
    cookie, browser = service.start_session(session, user.id)
    signed_in(request, response, session, cookie, browser)
    return _session_out(session, user, browser)


@system_router.get("/session")
def get_session(request: Request, session: Db, caller: PerhapsSignedIn) -> SessionOut | None:
    """Who is signed in, and what they may do; null for a browser in which no one has signed in."""
    if caller is None:
        return None
    user, browser = _own_session(request, session, caller)
    return _session_out(session, user, browser)


@system_router.put("/session/password", responses=problems(429))
def set_password(body: PasswordChange, request: Request, session: Db, caller: SignedIn) -> SessionOut:
    """Set the caller's own password. All other sessions of theirs end, and unused sign-in links are revoked."""
    user, browser = _own_session(request, session, caller)
    signing_in.set_password(
        session,
        request.app.state.sessions,
        user.id,
        current=body.current.get_secret_value() if body.current else None,
        new=body.new.get_secret_value(),
        keep=browser,
    )
    audit(session, caller, "password.set", f"user {user.name}")
    return _session_out(session, user, browser)


@system_router.delete("/session", status_code=204)
def sign_out(request: Request, response: Response, session: Db, caller: SignedIn) -> None:
    service.end_session(session, request.cookies.get(SESSION_COOKIE, ""))
    audit(session, caller, "session.end", caller.actor)
    response.delete_cookie(SESSION_COOKIE, httponly=True, samesite="lax")


def signed_in(request: Request, response: Response, session: Session, cookie: str, browser: BrowserSession) -> None:
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
    attempts.remember(session, user.id, _address(request))
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
        raise Forbidden("only a browser that has signed in can do this", code="no_session")
    browser = session.get_one(BrowserSession, secret_hash(cookie))
    return session.get_one(User, caller.user_id), browser


def _session_out(session: Session, user: User, browser: BrowserSession) -> SessionOut:
    memberships = select(Project, Membership.role).join(Membership, Membership.project_id == Project.id)
    rows = session.execute(memberships.where(Membership.user_id == user.id).order_by(Project.name)).all()
    return SessionOut(
        user=user.name,
        csrf_token=browser.csrf_token,
        has_password=user.password_hash is not None,
        is_operator=user.name == roles.OPERATOR,
        may_create_projects="admin" in roles.allowed_outside([role for _, role in rows]),
        projects=[
            SessionProject(name=project.name, id=project.id, role=role, allows=sorted(roles.allowed(role)))
            for project, role in rows
        ],
    )


def _address(request: Request) -> str:
    return attempts.counted_address(request.client.host if request.client else None)
