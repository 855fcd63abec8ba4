"""Links that show a report to someone without an account, until they expire or are revoked."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence

from sqlalchemy import Select, exists, func, or_, select, update
from sqlalchemy.orm import Session

from steerboard.accounts.tables import ApiToken, Project, User
from steerboard.evaluation.report.tables import ReportLink
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.http.errors import Conflict, NotFound
from steerboard.platform.security.credentials import new_secret, secret_hash

MOST_LINKS = 50


class TooManyLinks(Conflict):
    """An evaluation has as many working links as it may have."""

    code = "too_many_links"
    title = "The evaluation has too many links"


def create(session: Session, evaluation: Evaluation, life: dt.timedelta, actor: str) -> tuple[ReportLink, str]:
    """The link, and its code, which is known only now. Raises `TooManyLinks`."""
    # Two at once may not both be the last.
    session.execute(select(Evaluation.id).where(Evaluation.id == evaluation.id).with_for_update())
    working = len(links_of(session, evaluation))
    if working >= MOST_LINKS:
        raise TooManyLinks(f"{evaluation.name} has {working} active links", hint="Revoke one that is no longer needed.")
    now = session.scalar(select(func.now()))
    assert now is not None
    code = new_secret()
    link = ReportLink(evaluation_id=evaluation.id, code_hash=secret_hash(code), created_by=actor, expires_at=now + life)
    session.add(link)
    session.flush()
    session.refresh(link)
    return link, code


def links_of(session: Session, evaluation: Evaluation) -> Sequence[ReportLink]:
    """The links that work, the newest first."""
    return session.scalars(
        _working().where(ReportLink.evaluation_id == evaluation.id).order_by(ReportLink.id.desc())
    ).all()


def revoke(session: Session, evaluation: Evaluation, link_id: uuid.UUID) -> ReportLink:
    """It stops working with this transaction; revoked again, nothing changes. Raises `NotFound` (`unknown_link`)."""
    mine = select(ReportLink).where(ReportLink.evaluation_id == evaluation.id, ReportLink.id == link_id)
    link = session.scalar(mine.with_for_update())
    if link is None:
        raise NotFound("there is no such link", code="unknown_link", hint="GET report-links lists those that work.")
    if link.revoked_at is None:
        link.revoked_at = session.scalar(select(func.now()))
    return link


def revoke_of(session: Session, project: Project, user: User) -> list[str]:
    """Revokes links to reports of the project that this person made, by browser or token. Returns their ids."""
    with_token = exists().where(
        ApiToken.user_id == user.id,
        ReportLink.created_by == "token:" + ApiToken.name,
        # The name of a revoked token may be another person's by now.
        ReportLink.created_at >= ApiToken.created_at,
        or_(ApiToken.revoked_at.is_(None), ReportLink.created_at <= ApiToken.revoked_at),
    )
    evaluations = select(Evaluation.id).where(Evaluation.project_id == project.id)
    revoked = (
        update(ReportLink)
        .where(
            ReportLink.evaluation_id.in_(evaluations),
            ReportLink.revoked_at.is_(None),
            ReportLink.expires_at > func.now(),
            or_(ReportLink.created_by == f"user:{user.name}", with_token),
        )
        .values(revoked_at=func.clock_timestamp())
        .returning(ReportLink.id)
        .execution_options(synchronize_session=False)
    )
    return sorted(map(str, session.scalars(revoked)))


def evaluation_behind(session: Session, code: str) -> uuid.UUID | None:
    """Its id; None for a code that is unknown, expired or revoked, without a hint as to which."""
    link = session.scalar(_working().where(ReportLink.code_hash == secret_hash(code)))
    return link.evaluation_id if link is not None else None


def _working() -> Select[ReportLink]:
    return select(ReportLink).where(ReportLink.revoked_at.is_(None), ReportLink.expires_at > func.now())
