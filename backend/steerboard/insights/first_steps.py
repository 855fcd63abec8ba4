"""What a newcomer does first in a project: ask one model for several scores, import pairs, rank answers blind."""

from __future__ import annotations

import uuid

from pydantic import BaseModel
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.tables import Dataset
from steerboard.evaluation.ranking.tables import Campaign, RankingTask
from steerboard.playground.tables import Comparison, PlaygroundAnswer
from steerboard.registry.tables import Model
from steerboard_contracts.demo import DEMO_DATASETS

RANKINGS = 5


class FirstSteps(BaseModel):
    """`asked`: the playground has answers at a score. `steered`: the newest model that takes one, by name. `imported`:
    there is an imported preference dataset; those of `steerboard demo` do not count. `ranked`: submitted rankings, of
    `to_rank`. `campaign`: the newest one that is open."""

    asked: bool
    steered: str | None
    imported: bool
    ranked: int
    to_rank: int = RANKINGS
    campaign: uuid.UUID | None


def first_steps(session: Session, project: Project) -> FirstSteps:
    scored = (
        select(PlaygroundAnswer.place)
        .join(Comparison, Comparison.id == PlaygroundAnswer.comparison_id)
        .where(Comparison.project_id == project.id, ~Comparison.blind, PlaygroundAnswer.score.is_not(None))
    )
    imported = select(Dataset.id).where(
        Dataset.project_id == project.id,
        Dataset.kind == "preferences",
        Dataset.run_id.is_(None),
        Dataset.parent_id.is_(None),
        Dataset.name.not_in(DEMO_DATASETS.values()),
    )
    steered = select(Model.name).where(Model.project_id == project.id, Model.info["condition"].astext.is_not(None))
    ranked = (
        select(RankingTask.id)
        .join(Campaign, Campaign.id == RankingTask.campaign_id)
        .where(Campaign.project_id == project.id, RankingTask.state == "submitted")
        .limit(RANKINGS)
    )
    campaign = select(Campaign.id).where(Campaign.project_id == project.id, Campaign.state == "open")
    return FirstSteps(
        asked=session.scalar(scored.limit(1)) is not None,
        steered=session.scalar(steered.order_by(Model.id.desc()).limit(1)),
        imported=session.scalar(imported.limit(1)) is not None,
        ranked=session.scalar(select(func.count()).select_from(ranked.subquery())) or 0,
        campaign=session.scalar(campaign.order_by(Campaign.id.desc()).limit(1)),
    )
