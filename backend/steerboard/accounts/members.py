"""Who belongs to a project, in which role. A project always has an owner."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from steerboard.accounts import service, signing_in
from steerboard.accounts.tables import Membership, Project, User
from steerboard.platform.access import Caller
from steerboard.platform.errors import Conflict, Forbidden, NotFound
from steerboard.platform.roles import Role

INVITATION_LIFE = dt.timedelta(days=3)


def members_of(project: Project) -> Select[Membership]:
    return select(Membership).where(Membership.project_id == project.id)


def names_of(session: Session, members: list[Membership]) -> dict[object, str]:
    """User id to name."""
    people = select(User.id, User.name).where(User.id.in_([member.user_id for member in members]))
    return {person.id: person.name for person in session.execute(people)}


def add(session: Session, project: Project, name: str, role: Role) -> tuple[Membership, User, bool]:
    """The member, the person, and whether the account is new. Raises `Conflict` (`already_member`)."""
    user = session.scalar(select(User).where(User.name == name))
    created = user is None
    if user is None:
        user = User(name=name)
        session.add(user)
        session.flush()
    elif session.get(Membership, (project.id, user.id)) is not None:
        raise Conflict(
            f"`{name}` is a member already", code="already_member", hint="Change the role with PATCH, or remove first."
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
        raise NotFound(f"`{name}` is no member of this project", hint="List them with GET members.")
    return row[0], row[1]


def change_role(session: Session, project: Project, name: str, role: Role) -> tuple[Membership, str]:
    """The member and the role before. Raises `NotFound`, `Conflict` (`last_owner`)."""
    member, _ = find(session, project, name)
    before = member.role
    if before == "owner" and role != "owner":
        _refuse_last(session, project, name)
    member.role = role
    session.flush()
    return member, before


def remove(session: Session, project: Project, name: str) -> str:
    """It holds from this transaction's end. Returns the role. Raises `NotFound`, `Conflict` (`last_owner`)."""
    member, _ = find(session, project, name)
    if member.role == "owner":
        _refuse_last(session, project, name)
    session.delete(member)
    session.flush()
    return member.role


def new_link(session: Session, caller: Caller, project: Project, name: str) -> tuple[str, dt.datetime]:
    """For somebody who lost the way in: the password and all sessions end with it.

    Whoever may make it can do everything in each project of that person anyway, so it wins them nothing. Raises
    `NotFound`, `Forbidden` (`not_their_owner`).
    """
    _, user = find(session, project, name)
    theirs = session.scalars(
        select(Project).join(Membership, Membership.project_id == Project.id).where(Membership.user_id == user.id)
    )
    if not all("admin" in caller.scopes_in(session, other) for other in theirs):
        raise Forbidden(
            f"`{name}` also belongs to a project that is not yours",
            code="not_their_owner",
            hint="Whoever runs this Steerboard can make the link, with the token of `steerboard up`.",
        )
    signing_in.forget_password(session, user)
    return service.create_sign_in_link(session, user.id, INVITATION_LIFE)


def _refuse_last(session: Session, project: Project, name: str) -> None:
    owners = members_of(project).where(Membership.role == "owner").subquery()
    if session.scalar(select(func.count()).select_from(owners)) == 1:
        raise Conflict(
            f"`{name}` is the last owner of `{project.name}`",
            code="last_owner",
            hint="Make somebody else an owner first.",
        )
