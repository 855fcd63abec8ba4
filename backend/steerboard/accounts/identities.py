"""Whose account an identity of the OpenID provider is, and which roles its groups give. Callers commit."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.accounts import members, signing_in
from steerboard.accounts.oidc import Claims
from steerboard.accounts.roles import Role
from steerboard.accounts.tables import Identity, Membership, Project, User
from steerboard.platform.http.errors import Conflict
from steerboard.platform.settings import GroupRole

# The strongest first.
_STRENGTH: tuple[Role, ...] = ("owner", "engineer", "reviewer", "annotator", "viewer")
_LONGEST_NAME = 100


@dataclass
class Known:
    """`created`: the account is new. `linked`: it was there before its first sign-in by the provider."""

    user: User
    created: bool = False
    linked: bool = False
    # Project to the role that its groups give now, None where they took it away.
    roles: dict[str, str | None] = field(default_factory=dict)


def person_of(session: Session, claims: Claims, rules: list[GroupRole]) -> Known:
    """The account, made or linked at the first sign-in, with the roles that the groups give at each."""
    # One first sign-in of a person at a time, also in two tabs.
    key = func.hashtextextended(f"identity {claims.issuer} {claims.subject}", 0)
    session.execute(select(func.pg_advisory_xact_lock(key)))
    known = session.get(Identity, (claims.issuer, claims.subject))
    if known is not None:
        person = Known(session.get_one(User, known.user_id))
    else:
        person = _linked(session, claims) or _created(session, claims)
        session.add(Identity(issuer=claims.issuer, subject=claims.subject, user_id=person.user.id))
    if claims.email and person.user.email is None and _with_email(session, claims.email) is None:
        person.user.email = claims.email
    session.flush()
    person.roles = _give_roles(session, person.user, claims, rules)
    return person


def _linked(session: Session, claims: Claims) -> Known | None:
    """The account that an owner made for this address. Other ways into it end, so that its maker, who may hold a
    link or a session of it, does not keep them."""
    user = _with_email(session, claims.email) if claims.email else None
    if user is None:
        return None
    taken = select(Identity.user_id).where(Identity.user_id == user.id, Identity.issuer == claims.issuer)
    if session.scalar(taken) is not None:
        return None
    signing_in.forget_password(session, user)
    return Known(user, linked=True)


def _with_email(session: Session, email: str) -> User | None:
    return session.scalar(select(User).where(User.email == email).with_for_update())


def _created(session: Session, claims: Claims) -> Known:
    user = User(name=_free_name(session, claims.name or "user"))
    session.add(user)
    session.flush()
    return Known(user, created=True)


def _free_name(session: Session, wanted: str) -> str:
    """A name like the provider's, in the letters that names may have, and no one else's."""
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", wanted.partition("@")[0]).strip("._-")[:_LONGEST_NAME] or "user"
    session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended("names of new people", 0))))
    taken = set(session.scalars(select(User.name).where(User.name.startswith(base, autoescape=True))))
    number = 2
    name = base
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    return name


def _give_roles(session: Session, user: User, claims: Claims, rules: list[GroupRole]) -> dict[str, str | None]:
    """Only memberships that came by groups change; those that an owner gave stay as they are."""
    wanted: dict[str, Role] = {}
    for rule in rules:
        if rule.group == "*" or rule.group in claims.groups:
            before = wanted.get(rule.project)
            wanted[rule.project] = min((rule.role, before or rule.role), key=_STRENGTH.index)
    projects = {project.name: project for project in session.scalars(select(Project).where(Project.name.in_(wanted)))}
    changed: dict[str, str | None] = {}
    for name, project in sorted(projects.items()):
        member = session.get(Membership, (project.id, user.id))
        if member is None:
            members.add(session, project, user.name, wanted[name])[0].by_groups = True
            changed[name] = wanted[name]
        elif member.by_groups and member.role != wanted[name] and _change(session, project, user, wanted[name]):
            changed[name] = wanted[name]
    session.flush()
    given = select(Membership, Project).join(Project, Project.id == Membership.project_id)
    for _, project in session.execute(given.where(Membership.user_id == user.id, Membership.by_groups)).all():
        if project.name not in wanted and _change(session, project, user, None):
            changed[project.name] = None
    return changed


def _change(session: Session, project: Project, user: User, role: Role | None) -> bool:
    """A project's last owner stays one."""
    try:
        if role is None:
            members.remove(session, project, user.name)
        else:
            members.change_role(session, project, user.name, role)
    except Conflict:
        return False
    return True
