"""Who is asking, and for which project: bearer tokens and cookie sessions, scopes and roles, the audit row."""

from __future__ import annotations

import hmac
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import bindparam, func, or_, select, update
from sqlalchemy.orm import Session

from steerboard.accounts import idempotency
from steerboard.accounts.roles import DEFAULT_PROJECT, OPERATOR, Scope, allowed, allowed_outside
from steerboard.accounts.tables import ApiToken, AuditEntry, BrowserSession, Membership, Project, User
from steerboard.platform.concurrency import in_turn, take_slot
from steerboard.platform.database import transaction
from steerboard.platform.http.errors import Forbidden, NotFound, Unauthenticated
from steerboard.platform.http.origins import refuse_other_sites
from steerboard.platform.security.credentials import SESSION_COOKIE, secret_hash

CSRF_HEADER = "X-CSRF-Token"
# By which clients of OpenAI's API name a project.
PROJECT_HEADER = "OpenAI-Project"
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_LAST_USED_SECONDS = 60

# Asked by every request, and built once. Columns, for whole objects of two tables cost more than the query itself.
_BROWSER = (
    select(BrowserSession.csrf_token, User.id, User.name)
    .join(User, User.id == BrowserSession.user_id)
    .where(BrowserSession.session_hash == bindparam("session_hash"), BrowserSession.expires_at > func.now())
)
_PROJECTS = "GET /api/v1/projects lists yours; the command line takes that of STEERBOARD_PROJECT."
_PROJECT = select(Project, Membership.role).outerjoin(
    Membership, (Membership.project_id == Project.id) & (Membership.user_id == bindparam("user_id"))
)
_PROJECT_BY_ID = _PROJECT.where(Project.id == bindparam("ref"))
_PROJECT_BY_NAME = _PROJECT.where(Project.name == bindparam("ref"))
_ROLE = select(Membership.role).where(
    Membership.project_id == bindparam("project_id"), Membership.user_id == bindparam("user_id")
)


def db_session(request: Request, _turn: Annotated[None, Depends(take_slot, scope="function")]) -> Iterator[Session]:
    with transaction(request.app.state.sessions) as session:
        request.state.session = session
        yield session


# Function scope: the transaction commits before the answer is sent, so a failed commit is a failed request.
Db = Annotated[Session, Depends(db_session, scope="function")]
bearer = HTTPBearer(auto_error=False, description="A token of `steerboard tokens create`.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Security(bearer)]


@dataclass(frozen=True)
class Caller:
    """A person or a token, before a project is known. `project_id` binds a token to one project."""

    actor: str
    identity: str
    user_id: uuid.UUID | None
    project_id: uuid.UUID | None
    token_scopes: frozenset[str] | None

    @property
    def is_operator(self) -> bool:
        """Whether the caller runs the platform: its first person, or the token of `steerboard up`."""
        if self.token_scopes is None:
            return self.actor == f"user:{OPERATOR}"
        return self.project_id is None and "admin" in self.token_scopes

    def scopes_in(self, session: Session, project: Project) -> frozenset[str]:
        """What the caller may do there; empty when the project is none of theirs."""
        role = None
        if self.token_scopes is None:
            role = session.scalar(_ROLE, {"project_id": project.id, "user_id": self.user_id})
        return self.scopes_as(role, project)

    def scopes_as(self, role: str | None, project: Project) -> frozenset[str]:
        """The same for the role that the caller's person has there, which does not matter to a token."""
        if self.token_scopes is not None:
            return self.token_scopes if self.project_id in (None, project.id) else frozenset()
        return frozenset(allowed(role))

    def scopes_outside(self, session: Session) -> frozenset[str]:
        """What the caller may do outside of projects. A token of one project may only read there."""
        if self.token_scopes is not None:
            return self.token_scopes if self.project_id is None else self.token_scopes & {"read"}
        roles = session.scalars(select(Membership.role).where(Membership.user_id == self.user_id))
        return frozenset(allowed_outside(list(roles)))


@dataclass(frozen=True)
class Access:
    """A caller in a project. `actor` is for people to read, `identity` never changes. `user_id`: of the person, also
    behind a token."""

    project: Project
    actor: str
    scopes: frozenset[str]
    identity: str = ""
    user_id: uuid.UUID | None = None

    @property
    def owner(self) -> str:
        """Whose a favourite is: the person's, whichever token they use."""
        return f"user:{self.user_id}" if self.user_id else self.identity


def identify(request: Request, session: Db, credentials: Credentials) -> Caller:
    """The caller. Raises `Unauthenticated`; `Forbidden` (`cross_site`, `csrf_failed`) for a change by another site."""
    caller = _identified(request, session, credentials)
    request.app.state.callers.note(request, f"user:{caller.user_id}" if caller.user_id else caller.identity)
    return caller


def _identified(request: Request, session: Session, credentials: HTTPAuthorizationCredentials | None) -> Caller:
    if credentials is not None:
        return _token_caller(session, credentials.credentials)
    cookie = request.cookies.get(SESSION_COOKIE)
    if cookie is None:
        raise Unauthenticated(
            "This needs a bearer token or a signed-in browser.",
            hint="Send `Authorization: Bearer TOKEN`, or open the sign-in link that `steerboard up` prints.",
        )
    return _cookie_caller(request, session, cookie)


def _token_caller(session: Session, secret: str) -> Caller:
    token = session.scalar(
        select(ApiToken).where(
            ApiToken.token_hash == secret_hash(secret),
            ApiToken.revoked_at.is_(None),
            or_(ApiToken.expires_at.is_(None), ApiToken.expires_at > func.now()),
        )
    )
    if token is None:
        raise Unauthenticated(
            "The token is unknown, revoked or expired.",
            code="invalid_token",
            hint="Create another with `steerboard tokens create`.",
        )
    # Skips a locked row: concurrent requests of one token never wait for each other to note the time.
    stale = or_(
        ApiToken.last_used_at.is_(None),
        ApiToken.last_used_at < func.now() - func.make_interval(0, 0, 0, 0, 0, 0, _LAST_USED_SECONDS),
    )
    free = select(ApiToken.id).where(ApiToken.id == token.id, stale).with_for_update(skip_locked=True)
    session.execute(
        update(ApiToken).where(ApiToken.id.in_(free)).values(last_used_at=func.now()),
        execution_options={"synchronize_session": False},
    )
    return Caller(f"token:{token.name}", f"token:{token.id}", token.user_id, token.project_id, frozenset(token.scopes))


def _cookie_caller(request: Request, session: Session, cookie: str) -> Caller:
    row = session.execute(_BROWSER, {"session_hash": secret_hash(cookie)}).one_or_none()
    if row is None:
        raise Unauthenticated(
            "The session has ended.", code="session_ended", hint="Sign in again with `steerboard sign-in`."
        )
    if request.method not in _SAFE_METHODS:
        refuse_other_sites(request)
        if not hmac.compare_digest(request.headers.get(CSRF_HEADER, "").encode(), row.csrf_token.encode()):
            raise Forbidden(
                f"The header {CSRF_HEADER} does not carry this session's token.",
                code="csrf_failed",
                hint="Read it from GET /api/v1/session.",
            )
    return Caller(f"user:{row.name}", f"user:{row.id}", row.id, None, None)


SignedIn = Annotated[Caller, Depends(identify, scope="function")]


def identify_if_any(request: Request, session: Db, credentials: Credentials) -> Caller | None:
    """The same, and None for a caller with neither token nor cookie."""
    if credentials is None and SESSION_COOKIE not in request.cookies:
        return None
    return identify(request, session, credentials)


PerhapsSignedIn = Annotated[Caller | None, Depends(identify_if_any, scope="function")]


async def admit(request: Request, scope: Scope | None = None) -> None:
    """Authenticates before a large body is read, in a transaction of its own.

    Raises like `identify`, and like `AccessTo(scope)` where a scope is given."""
    credentials = await bearer(request)

    def look() -> None:
        with transaction(request.app.state.sessions) as session:
            caller = identify(request, session, credentials)
            if scope is not None:
                require(asked_project(request, session, caller)[1], scope)

    await in_turn(request, look)


def visible_project(session: Session, caller: Caller, ref: str) -> tuple[Project, frozenset[str]]:
    """A project by id or name, with the caller's scopes. Another's project is `NotFound`, like one that is not."""
    try:
        row = session.execute(_PROJECT_BY_ID, {"ref": uuid.UUID(ref), "user_id": caller.user_id}).one_or_none()
    except ValueError:
        row = session.execute(_PROJECT_BY_NAME, {"ref": ref, "user_id": caller.user_id}).one_or_none()
    project, role = row if row is not None else (None, None)
    scopes = caller.scopes_as(role, project) if project is not None else frozenset[str]()
    if project is None or not scopes:
        raise NotFound(f"there is no project `{ref}`", hint=_PROJECTS)
    return project, scopes


def asked_project(request: Request, session: Session, caller: Caller) -> tuple[Project, frozenset[str]]:
    """The project of the path; without one that of the header, then the token's own, then `default`."""
    own = str(caller.project_id) if caller.project_id else DEFAULT_PROJECT
    named = request.path_params.get("project") or request.headers.get(PROJECT_HEADER)
    return visible_project(session, caller, named or own)


def require(scopes: frozenset[str], scope: Scope) -> None:
    """`admin` may do everything. Raises `Forbidden` (`missing_scope`)."""
    if scope not in scopes and "admin" not in scopes:
        raise Forbidden(
            f"this needs the scope `{scope}`; yours are {', '.join(sorted(scopes)) or 'none'}",
            code="missing_scope",
            hint="Ask an owner of the project for another role, or for a token with that scope.",
        )


class AccessTo:
    """Dependency `Annotated[Access, Depends(AccessTo("run"))]` of an endpoint below `/projects/{project}`.

    Without a scope: for everyone who may do anything in the project.
    """

    def __init__(self, scope: Scope | None = None) -> None:
        self._scope = scope

    def __call__(self, request: Request, session: Db, caller: SignedIn, project: str) -> Access:
        visible, scopes = visible_project(session, caller, project)
        if self._scope is not None:
            require(scopes, self._scope)
        idempotency.begin(request, session, caller.identity)
        return Access(visible, caller.actor, scopes, caller.identity, caller.user_id)


def let_go(session: Session) -> None:
    """End the transaction and give its connection back, before a slow call to someone else's server.

    Objects stay readable, but the session takes no more work. For routes of `routes.UnkeptRoute` only: the answer
    of others is kept in their transaction.
    """
    session.commit()


class SystemAccessTo:
    """The same for endpoints outside of projects."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __call__(self, request: Request, session: Db, caller: SignedIn) -> Caller:
        require(caller.scopes_outside(session), self._scope)
        idempotency.begin(request, session, caller.identity)
        return caller


def operator_only(caller: SignedIn) -> Caller:
    """Dependency of what concerns the people of all projects. Raises `Forbidden` (`operator_only`)."""
    if not caller.is_operator:
        raise Forbidden(
            "this affects people of all projects, so only the operator of this server can do it",
            code="operator_only",
            hint=f"The operator signs in as `{OPERATOR}`, with a link of `steerboard sign-in-link`.",
        )
    return caller


def audit(
    session: Session, access: Access | Caller, action: str, target: str, detail: dict[str, Any] | None = None
) -> None:
    """Note a change in its own transaction. `action` is `thing.verb`, `target` names the thing."""
    project_id = access.project.id if isinstance(access, Access) else access.project_id
    session.add(
        AuditEntry(project_id=project_id, actor=access.actor, action=action, target=target, detail=detail or {})
    )
