"""What of a campaign counts: the reviewer's decision on an item where there is one, else what annotators submitted."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, exists, literal, null, select, union_all
from sqlalchemy.orm import InstrumentedAttribute, Session

from steerboard.accounts.tables import User
from steerboard.evaluation.ranking.qualification import qualifications
from steerboard.evaluation.ranking.tables import Campaign, RankingDecision, RankingItem, RankingTask

_SAID = ("shown", "ranks", "criteria_ranks", "scores", "both_bad", "correction", "replies")


@dataclass(frozen=True)
class Counted:
    """Columns as in `RankingTask`. `adjudicated`: a reviewer's decision, for which the submissions of the item do not
    count."""

    item_id: uuid.UUID
    position: int
    by: str
    at: dt.datetime | None
    flag: str | None
    adjudicated: bool
    shown: list[str]
    ranks: list[int] | None
    criteria_ranks: dict[str, list[int]] | None
    scores: dict[str, list[int]] | None
    both_bad: bool
    correction: str | None
    replies: dict[str, Any] | None


def counted(session: Session, campaign: Campaign) -> Iterator[Counted]:
    """Rankings by position and name; of a campaign with a qualification only those of annotators who passed it."""
    query = select(
        RankingTask.item_id,
        RankingItem.position,
        User.name.label("by"),
        RankingTask.submitted_at.label("at"),
        RankingTask.flag,
        literal(False).label("adjudicated"),
        *(getattr(RankingTask, name) for name in _SAID),
    ).where(RankingTask.campaign_id == campaign.id, RankingTask.state == "submitted", ~decided(RankingTask.item_id))
    ruled = select(
        RankingDecision.item_id,
        RankingItem.position,
        User.name.label("by"),
        RankingDecision.created_at.label("at"),
        null().label("flag"),
        literal(True).label("adjudicated"),
        *(getattr(RankingDecision, name) for name in _SAID),
    ).where(RankingDecision.campaign_id == campaign.id, RankingDecision.superseded.is_(False))
    if campaign.qualify_items:
        known = qualifications(session, campaign.id, campaign.qualify_items, campaign.qualify_share)
        passed = [user for user, qualification in known.items() if qualification.state == "passed"]
        query = query.where(RankingTask.user_id.in_(passed))
    both = union_all(
        query.join(RankingItem, RankingItem.id == RankingTask.item_id).join(User, User.id == RankingTask.user_id),
        ruled.join(RankingItem, RankingItem.id == RankingDecision.item_id).join(
            User, User.id == RankingDecision.user_id
        ),
    ).subquery()
    for row in session.execute(select(both).order_by(both.c.position, both.c.by)):
        yield Counted(**row._mapping)


def decided(item_id: InstrumentedAttribute[uuid.UUID]) -> ColumnElement[bool]:
    """Whether a reviewer has decided the item."""
    return exists().where(RankingDecision.item_id == item_id, RankingDecision.superseded.is_(False))
