"""Who belongs to a project, in which role. A project always has an owner."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass

from sqlalchemy import ARRAY, TEXT, Select, cast, delete, func, not_, select, update
from sqlalchemy.orm import Session

from steerboard.accounts import hooks, service, signing_in
from steerboard.accounts.access import Caller
from steerboard.accounts.roles import OPERATOR, Role, Scope, TokenScope, allowed
from steerboard.accounts.tables import ApiToken, Membership, Project, SignInLink, User
from steerboard.platform.http.errors import Conflict, Forbidden, NotFound

INVITATION_LIFE = dt.timedelta(days=3)


def members_of(project: Project) -> Select[Membership]:
    return select(Membership).where(Membership.project_id == project.id)


def names_of(session: Session, members: list[Membership]) -> dict[object, str]:
    """User id to name."""
    people = select(User.id, User.name).where(User.id.in_([member.user_id for member in members]))
    return {person.id: person.name for person in session.execute(people)}


def add(
    session: Session, project: Project, name: str, role: Role, email: str | None = None
) -> tuple[Membership, User, bool]:
    """The member, the person, and whether the account is new. `email` is kept for a new one.

    Raises `Conflict` (`already_member`, `email_taken`)."""
    user = session.scalar(select(User).where(User.name == name))
    created = user is None
    if user is None:
        if email and session.scalar(select(User.id).where(User.email == email.lower())) is not None:
            raise Conflict(
                "another account has this e-mail address",
                code="email_taken",
                hint="Add that account by its name, or leave the address out.",
            )
        user = User(name=name, email=email.lower() if email else None)
        session.add(user)
        session.flush()
    elif session.get(Membership, (project.id, user.id)) is not None:
        raise Conflict(
            f"`{name}` is already a member",
            code="already_member",
            hint="Change the role with PATCH, or remove the member first.",
        )
    member = Membership(project_id=project.id, user_id=user.id, role=role)
    session.add(member)
    session.flush()
    session.refresh(member)
    return member, user, created


def find(session: Session, project: Project, name: str) -> tuple[Membership, User]:
    """The newest state. Until the end of the transaction no other changes an owner. Raises `NotFound`."""
    session.execute(select(Project.id).where(Project.id == project.id).with_for_update(key_share=True))
    row = session.execute(
        select(Membership, User)
        .join(User, User.id == Membership.user_id)
        .where(Membership.project_id == project.id, User.name == name)
        .execution_options(populate_existing=True)
    ).one_or_none()
    if row is None:
        raise NotFound(f"`{name}` is not a member of this project", hint="List them with GET members.")
    return row[0], row[1]


def change_role(session: Session, project: Project, name: str, role: Role) -> tuple[Membership, str, list[str]]:
    """The member, the role before, and the names of their tokens that are revoked because they exceed the new role.

    Raises `NotFound`, `Conflict` (`last_owner`)."""
    member, _ = find(session, project, name)
    before = member.role
    if before == "owner" and role != "owner":
        _refuse_last(session, project, name)
    member.role = role
    session.flush()
    return member, before, _end_tokens(session, member, allowed(role))


@dataclass(frozen=True)
class Removed:
    """What ended with a membership: names of tokens, ids of links to reports."""

    role: str
    tokens: list[str]
    links: list[str]


def remove(session: Session, project: Project, name: str) -> Removed:
    """It holds from this transaction's end. Someone who is in no other project loses their sign-in links.

    Raises `NotFound`, `Conflict` (`last_owner`)."""
    member, user = find(session, project, name)
    if member.role == "owner":
        _refuse_last(session, project, name)
    session.delete(member)
    session.flush()
    if session.scalar(select(Membership.project_id).where(Membership.user_id == user.id).limit(1)) is None:
        session.execute(delete(SignInLink).where(SignInLink.user_id == user.id))
    links = hooks.revoke_links(session, project, user)
    return Removed(member.role, _end_tokens(session, member, frozenset()), links)


def _end_tokens(session: Session, member: Membership, may: frozenset[Scope]) -> list[str]:
    """Revokes the member's tokens of the project that can do more than that. Making one locks the member's row
    (`token_owner`), so none is made meanwhile."""
    ended = (
        update(ApiToken)
        .where(
            ApiToken.project_id == member.project_id,
            ApiToken.user_id == member.user_id,
            ApiToken.revoked_at.is_(None),
            not_(ApiToken.scopes.contained_by(cast(sorted(may), ARRAY(TEXT)))),
        )
        .values(revoked_at=func.clock_timestamp())
        .returning(ApiToken.name)
        .execution_options(synchronize_session=False)
    )
    return sorted(session.scalars(ended))


def token_owner(session: Session, caller: Caller, project: Project, scopes: list[TokenScope]) -> uuid.UUID | None:
    """Whose a token of these scopes will be, who keeps their role until this transaction ends; None: the operator's.

    Raises `Forbidden` (`missing_scope`) for someone who was removed or demoted at this moment.
    """
    roles = select(Membership.role).where(Membership.project_id == project.id, Membership.user_id == caller.user_id)
    role = session.scalar(roles.with_for_update(read=True))
    if set(scopes) <= allowed(role):
        return caller.user_id
    if caller.user_id is None or caller.is_operator:
        return None
    raise Forbidden(
        "your role in this project has just changed", code="missing_scope", hint="Reload the Settings page."
    )


def new_link(session: Session, caller: Caller, project: Project, name: str) -> tuple[str, dt.datetime]:
    """A link for someone who lost the way in: the password and all sessions end with it.

    Anyone allowed to make it already has full access to that person's projects, so gains nothing. Raises
    `NotFound`, `Forbidden` (`not_their_owner`).
    """
    _, user = find(session, project, name)
    projects = session.scalars(
        select(Project).join(Membership, Membership.project_id == Project.id).where(Membership.user_id == user.id)
    )
    more = "runs this server" if user.name == OPERATOR and not caller.is_operator else ""
    if not all("admin" in caller.scopes_in(session, other) for other in projects):
        more = "also belongs to a project that is not yours"
    if more:
        raise Forbidden(
            f"`{name}` {more}",
            code="not_their_owner",
            hint="The operator of this server can make the link with `steerboard sign-in-link --user NAME`.",
        )
    signing_in.forget_password(session, user)
    return service.create_sign_in_link(session, user.id, INVITATION_LIFE)


def _refuse_last(session: Session, project: Project, name: str) -> None:
    owners = members_of(project).where(Membership.role == "owner").subquery()
    if session.scalar(select(func.count()).select_from(owners)) == 1:
        raise Conflict(
            f"`{name}` is the last owner of `{project.name}`",
            code="last_owner",
            hint="Make someone else an owner first.",
        )
