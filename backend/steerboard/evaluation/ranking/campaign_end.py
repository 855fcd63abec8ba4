"""What notices report of a campaign whose items all have their rankings."""

from __future__ import annotations

import uuid

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.evaluation.ranking.tables import Campaign, RankingItem
from steerboard.runs.hooks import News
from steerboard.runs.state.announcements import note_news


def campaign_moved(session: Session, campaign_id: uuid.UUID) -> None:
    """Notices report, once, when all items of a campaign have their rankings."""
    campaign = session.get_one(Campaign, campaign_id)
    left = RankingItem.campaign_id == campaign_id, RankingItem.rankings < campaign.overlap
    if session.scalar(select(RankingItem.id).where(*left).limit(1)) is not None:
        return
    items = session.scalar(select(func.count()).where(RankingItem.campaign_id == campaign_id))
    about = {"id": str(campaign.id), "name": campaign.name, "state": "done", "reason": f"all {items} items are ranked"}
    path = f"/evaluations/{campaign.evaluation_id}"
    note_news(
        session, News(campaign.project_id, "campaign.done", about, path=path, once=f"campaign.done {campaign.id}")
    )
