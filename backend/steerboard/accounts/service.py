"""Rules of projects, tokens, sign-in links and browser sessions."""

from __future__ import annotations

import datetime as dt
import secrets
import uuid

from sqlalchemy import Select, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from steerboard.accounts import attempts
from steerboard.accounts.access import Caller
from steerboard.accounts.roles import DEFAULT_PROJECT, OPERATOR
from steerboard.accounts.tables import ApiToken, BrowserSession, IdempotencyKey, Membership, Project, SignInLink, User
from steerboard.platform.events.tables import EventStream
from steerboard.platform.http.errors import Conflict, NotFound, Unauthenticated
from steerboard.platform.names import find
from steerboard.platform.security.credentials import TOKEN_PREFIX, new_secret, secret_hash

LINK_LIFE = dt.timedelta(minutes=30)
SESSION_LIFE = dt.timedelta(days=14)


def create_project(session: Session, name: str, held_out_fraction: float) -> Project:
    """Raises `Conflict` (`name_taken`). The salt decides the splits of all of its data for good."""
    if session.scalar(select(Project.id).where(Project.name == name)):
        raise Conflict(f"there is already a project `{name}`", code="name_taken", hint="Choose another name.")
    project = Project(name=name, split_salt=secrets.token_hex(16), held_out_fraction=held_out_fraction)
    session.add(project)
    session.flush()
    session.add(EventStream(project_id=project.id, last_id=0))
    return project


def rename_project(session: Session, project: Project, name: str) -> Project:
    """Raises `Conflict` (`name_taken`)."""
    if session.scalar(select(Project.id).where(Project.name == name, Project.id != project.id)):
        raise Conflict(f"there is already a project `{name}`", code="name_taken", hint="Choose another name.")
    project.name = name
    session.flush()
    return project


def ensure_default(session: Session, held_out_fraction: float) -> tuple[Project, User]:
    """The project and person that `steerboard up` starts with; safe to call at every start.

    Where someone renamed `default`, the oldest project is the one, and no other takes its place.
    """
    project = session.scalar(select(Project).where(Project.name == DEFAULT_PROJECT))
    project = project or session.scalar(select(Project).order_by(Project.id).limit(1))
    project = project or create_project(session, DEFAULT_PROJECT, held_out_fraction)
    user = session.scalar(select(User).where(User.name == OPERATOR))
    if user is None:
        user = User(name=OPERATOR)
        session.add(user)
        session.flush()
    session.execute(
        insert(Membership).values(project_id=project.id, user_id=user.id, role="owner").on_conflict_do_nothing()
    )
    return project, user


def visible_projects(caller: Caller) -> Select[Project]:
    query = select(Project)
    if caller.token_scopes is None:
        joined = select(Membership.project_id).where(Membership.user_id == caller.user_id)
        return query.where(Project.id.in_(joined))
    return query if caller.project_id is None else query.where(Project.id == caller.project_id)


def create_token(
    session: Session,
    *,
    name: str,
    scopes: list[str],
    project_id: uuid.UUID | None,
    user_id: uuid.UUID | None = None,
    life: dt.timedelta | None = None,
) -> tuple[ApiToken, str]:
    """The row and the secret, which exists nowhere else. Raises `Conflict` for a name that a live token has."""
    taken = select(ApiToken.id).where(
        ApiToken.project_id.is_not_distinct_from(project_id), ApiToken.name == name, ApiToken.revoked_at.is_(None)
    )
    if session.scalar(taken.limit(1)):
        raise Conflict(
            f"there is already a token `{name}`", code="name_taken", hint="Revoke it or choose another name."
        )
    secret = new_secret(TOKEN_PREFIX)
    token = ApiToken(
        name=name,
        scopes=sorted(set(scopes)),
        project_id=project_id,
        user_id=user_id,
        token_hash=secret_hash(secret),
        hint=secret[: len(TOKEN_PREFIX) + 4],
        expires_at=session.scalar(select(func.now())) + life if life else None,  # type: ignore[operator]
    )
    session.add(token)
    session.flush()
    session.refresh(token)
    return token, secret


def revoke_token(session: Session, project: Project, ref: str) -> ApiToken:
    """Revoke a token by id or name. A second time changes nothing. Raises `NotFound`."""
    tokens = select(ApiToken).where(ApiToken.project_id == project.id)
    live_first = tokens.order_by(ApiToken.revoked_at.is_(None).desc(), ApiToken.id.desc())
    token = find(session, live_first, ApiToken.id, ApiToken.name, ref)
    if token is None:
        raise NotFound(f"there is no token `{ref}`", hint="List them with `steerboard tokens list`.")
    revoke(session, token)
    return token


def revoke(session: Session, token: ApiToken) -> None:
    live = update(ApiToken).where(ApiToken.id == token.id, ApiToken.revoked_at.is_(None))
    session.execute(live.values(revoked_at=func.clock_timestamp()))
    session.refresh(token)


def replace_local_token(session: Session, user: User, name: str) -> str:
    """The token of this machine's CLI: all projects, all scopes; every start makes a new one."""
    for old in session.scalars(
        select(ApiToken).where(ApiToken.name == name, ApiToken.project_id.is_(None), ApiToken.revoked_at.is_(None))
    ):
        revoke(session, old)
    scopes = ["read", "write", "run", "admin"]
    return create_token(session, name=name, scopes=scopes, project_id=None, user_id=user.id)[1]


def create_sign_in_link(
    session: Session, user_id: uuid.UUID, life: dt.timedelta = LINK_LIFE
) -> tuple[str, dt.datetime]:
    """The code of a link that works once, and when it ends."""
    code = new_secret()
    now = session.scalar(select(func.now()))
    assert now is not None
    session.add(SignInLink(code_hash=secret_hash(code), user_id=user_id, expires_at=now + life))
    return code, now + life


def use_sign_in_link(session: Session, code: str) -> tuple[str, BrowserSession]:
    """Trade a code for a session: its cookie and its row. One statement decides, so two browsers cannot both win.

    Raises `Unauthenticated` (`link_used`).
    """
    used = session.scalar(
        update(SignInLink)
        .where(
            SignInLink.code_hash == secret_hash(code), SignInLink.used_at.is_(None), SignInLink.expires_at > func.now()
        )
        .values(used_at=func.now())
        .returning(SignInLink.user_id)
    )
    if used is None:
        raise used_link()
    return start_session(session, used)


def used_link() -> Unauthenticated:
    return Unauthenticated(
        "This sign-in link has already been used, or has expired.",
        code="link_used",
        hint="Create another with `steerboard sign-in`, or ask an owner of your project.",
    )


def is_open(session: Session, code: str) -> bool:
    """Whether a sign-in link would still work."""
    link = session.get(SignInLink, secret_hash(code))
    now = session.scalar(select(func.now()))
    assert now is not None
    return link is not None and link.used_at is None and link.expires_at > now


def start_session(session: Session, user_id: uuid.UUID) -> tuple[str, BrowserSession]:
    """Its cookie and its row."""
    cookie = new_secret()
    now = session.scalar(select(func.now()))
    assert now is not None
    browser = BrowserSession(
        session_hash=secret_hash(cookie), user_id=user_id, csrf_token=new_secret(), expires_at=now + SESSION_LIFE
    )
    session.add(browser)
    return cookie, browser


def end_session(session: Session, cookie: str) -> None:
    browser_session = session.get(BrowserSession, secret_hash(cookie))
    if browser_session is not None:
        session.delete(browser_session)


def forget_old(session: Session) -> None:
    """Links and sessions that have ended, old sign-in attempts, and idempotency keys older than a week."""
    attempts.forget_old(session)
    session.execute(delete(SignInLink).where(SignInLink.expires_at < func.now()))
    session.execute(delete(BrowserSession).where(BrowserSession.expires_at < func.now()))
    week = func.now() - func.make_interval(0, 0, 1)
    session.execute(delete(IdempotencyKey).where(IdempotencyKey.created_at < week))
