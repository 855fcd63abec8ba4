"""Links that show a page to someone without an account, until they expire or are revoked."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence

from sqlalchemy import Select, exists, func, or_, select, update
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, audit
from steerboard.accounts.tables import ApiToken, Project, User
from steerboard.platform.http.errors import Conflict, NotFound
from steerboard.platform.security.credentials import new_secret, secret_hash
from steerboard.sharing.frozen import FrozenPage, to_json
from steerboard.sharing.schemas import ShareKind, ShareLinkCreated, ShareLinkOut
from steerboard.sharing.tables import ShareLink

MOST_LINKS = 50
# Links to frozen pages, which the database keeps as a whole.
MOST_FROZEN = 200
_TITLE = 120


class TooManyLinks(Conflict):
    """An evaluation or a project has as many working links as it may have."""

    code = "too_many_links"
    title = "There are too many links"


def create_report_link(
    session: Session, access: Access, evaluation_id: uuid.UUID, title: str, days: int
) -> ShareLinkCreated:
    """A link to the current report of an evaluation. Raises `TooManyLinks`."""
    links = _working().where(ShareLink.evaluation_id == evaluation_id)
    return _create(session, access, links, MOST_LINKS, days, kind="report", title=title, evaluation_id=evaluation_id)


def create_frozen_link(
    session: Session, access: Access, kind: ShareKind, page: FrozenPage, days: int
) -> ShareLinkCreated:
    """A link to the page as it is given now, whatever happens to what it was made from. Raises `TooManyLinks`."""
    links = _working().where(ShareLink.project_id == access.project.id, ShareLink.kind != "report")
    return _create(session, access, links, MOST_FROZEN, days, kind=kind, title=page.title, page=to_json(page))


def _create(
    session: Session, access: Access, alike: Select[ShareLink], most: int, days: int, *, title: str, **fields: object
) -> ShareLinkCreated:
    # Two at once may not both be the last.
    session.execute(select(Project.id).where(Project.id == access.project.id).with_for_update())
    working = session.scalar(select(func.count()).select_from(alike.subquery())) or 0
    if working >= most:
        raise TooManyLinks(f"there are {working} active links", hint="Revoke one that is no longer needed.")
    now = session.scalars(select(func.now())).one()
    code = new_secret()
    link = ShareLink(
        project_id=access.project.id,
        title=title[:_TITLE],
        code_hash=secret_hash(code),
        created_by=access.actor,
        expires_at=now + dt.timedelta(days=days),
        **fields,
    )
    session.add(link)
    session.flush()
    session.refresh(link)
    audit(session, access, "share_link.create", _target(link), {**_about(link), "days": days})
    return ShareLinkCreated(**ShareLinkOut.model_validate(link).model_dump(), path=f"/shared/{code}")


def links_of(
    session: Session, project: Project, kind: ShareKind | None = None, evaluation_id: uuid.UUID | None = None
) -> Sequence[ShareLink]:
    """The links that work, the newest first."""
    links = _working().where(ShareLink.project_id == project.id).order_by(ShareLink.id.desc())
    if kind is not None:
        links = links.where(ShareLink.kind == kind)
    if evaluation_id is not None:
        links = links.where(ShareLink.evaluation_id == evaluation_id)
    return session.scalars(links).all()


def revoke(session: Session, access: Access, link_id: uuid.UUID, evaluation_id: uuid.UUID | None = None) -> None:
    """It stops working with this transaction; revoked again, nothing changes. `evaluation_id`: only a link to its
    report. Raises `NotFound` (`unknown_link`)."""
    query = select(ShareLink).where(ShareLink.project_id == access.project.id, ShareLink.id == link_id)
    if evaluation_id is not None:
        query = query.where(ShareLink.evaluation_id == evaluation_id)
    link = session.scalar(query.with_for_update())
    if link is None:
        raise NotFound("there is no such link", code="unknown_link", hint="GET share-links lists those that work.")
    if link.revoked_at is None:
        link.revoked_at = session.scalar(select(func.now()))
    audit(session, access, "share_link.revoke", _target(link), _about(link))


def revoke_of(session: Session, project: Project, user: User) -> list[str]:
    """Revokes links of the project that this person made, by browser or token. Returns their ids."""
    with_token = exists().where(
        ApiToken.user_id == user.id,
        ShareLink.created_by == "token:" + ApiToken.name,
        # The name of a revoked token may be another person's by now.
        ShareLink.created_at >= ApiToken.created_at,
        or_(ApiToken.revoked_at.is_(None), ShareLink.created_at <= ApiToken.revoked_at),
    )
    revoked = (
        update(ShareLink)
        .where(
            ShareLink.project_id == project.id,
            ShareLink.revoked_at.is_(None),
            ShareLink.expires_at > func.now(),
            or_(ShareLink.created_by == f"user:{user.name}", with_token),
        )
        .values(revoked_at=func.clock_timestamp())
        .returning(ShareLink.id)
        .execution_options(synchronize_session=False)
    )
    return sorted(map(str, session.scalars(revoked)))


def link_behind(session: Session, code: str) -> ShareLink | None:
    """Returns None for a code that is unknown, expired or revoked, without a hint as to which."""
    return session.scalar(_working().where(ShareLink.code_hash == secret_hash(code)))


def _working() -> Select[ShareLink]:
    return select(ShareLink).where(ShareLink.revoked_at.is_(None), ShareLink.expires_at > func.now())


def _target(link: ShareLink) -> str:
    """The target as the audit log names it: the evaluation, or the link where its page is all that it shows."""
    return f"evaluation {link.title} {link.evaluation_id}" if link.evaluation_id else f"share link {link.id}"


def _about(link: ShareLink) -> dict[str, str]:
    return {"link": str(link.id), "kind": link.kind, "title": link.title}
