"""Adjudication over HTTP: where annotators disagree, and what a reviewer decides. No answer names an entrant."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import Depends, Query
from sqlalchemy import select

from steerboard.accounts.access import Access, AccessTo, Db
from steerboard.accounts.http.routes import Router
from steerboard.evaluation.events import ranked
from steerboard.evaluation.ranking.presenters import campaign_row
from steerboard.evaluation.ranking.review import service
from steerboard.evaluation.ranking.review.schemas import Review, ReviewItem
from steerboard.evaluation.ranking.schemas import Annotation
from steerboard.evaluation.ranking.tables import RankingDecision, RankingItem
from steerboard.platform.http.errors import Forbidden, problems
from steerboard.platform.http.paging import Page, paginate

router = Router(prefix="/rankings/{campaign}", tags=["ranking"])


def reviewer(access: Annotated[Access, Depends(AccessTo("review"))]) -> uuid.UUID:
    if access.user_id is None or not access.identity.startswith("user:"):
        raise Forbidden("a token cannot review: decisions belong to people", code="no_person")
    return access.user_id


May = Annotated[Access, Depends(AccessTo("review"))]
Reviewer = Annotated[uuid.UUID, Depends(reviewer)]


@router.get("/review", responses=problems(404))
def list_disagreements(
    session: Db,
    access: May,
    me: Reviewer,
    campaign: uuid.UUID,
    limit: Annotated[int, Query(ge=1, le=50)] = 5,
) -> Review:
    """Items on which annotators disagree and no one has decided, the greatest disagreement first."""
    stored = service.campaign_of(session, access.project, campaign)
    return service.review(session, campaign_row(session, access.project, campaign), stored, me, limit)


@router.get("/decisions", responses=problems(404))
def list_decisions(
    session: Db,
    access: May,
    me: Reviewer,
    campaign: uuid.UUID,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=50)] = 10,
) -> Page[ReviewItem]:
    """Items that were decided, the newest decision first, each with what annotators submitted."""
    stored = service.campaign_of(session, access.project, campaign)

    def shown(page: list[RankingDecision]) -> list[ReviewItem]:
        items = {
            item.id: item
            for item in session.scalars(
                select(RankingItem).where(RankingItem.id.in_([decision.item_id for decision in page]))
            )
        }
        return service.review_items(session, stored, me, [items[decision.item_id] for decision in page])

    kept = select(RankingDecision).where(RankingDecision.campaign_id == campaign, RankingDecision.superseded.is_(False))
    return paginate(
        session,
        kept,
        RankingDecision.id,
        lambda decision: shown([decision])[0],
        cursor=cursor,
        limit=limit,
        convert_all=lambda page: shown(list(page)),
    )


@router.put("/decisions/{item}", status_code=204, responses=problems(404))
def decide(session: Db, access: May, me: Reviewer, campaign: uuid.UUID, item: uuid.UUID, body: Annotation) -> None:
    """Decide an item: this counts instead of what annotators submitted. In the order that the caller was shown."""
    stored = service.campaign_of(session, access.project, campaign)
    service.decide(session, stored, me, item, body)
    ranked(session, stored.evaluation_id, access, "ranking.decide", f"item {item}")


@router.delete("/decisions/{item}", status_code=204, responses=problems(404))
def withdraw_decision(session: Db, access: May, _: Reviewer, campaign: uuid.UUID, item: uuid.UUID) -> None:
    """Let what annotators submitted count again. The decision is kept."""
    stored = service.campaign_of(session, access.project, campaign)
    service.withdraw(session, stored, item)
    ranked(session, stored.evaluation_id, access, "ranking.withdraw", f"item {item}")
