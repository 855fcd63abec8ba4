"""Whether annotators agree more with a judge whose suggestion they see."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.evaluation.judge_tables import Judge
from steerboard.evaluation.ranking.campaigns.quality_schemas import JudgeAgreement, SuggestionQuality
from steerboard.evaluation.ranking.campaigns.shares import fields, share_of_pairs
from steerboard.evaluation.ranking.qualification import right_pairs
from steerboard.evaluation.ranking.suggestions import judge_views
from steerboard.evaluation.ranking.tables import Campaign, RankingItem, RankingTask


def suggestion_quality(session: Session, campaign: Campaign) -> SuggestionQuality | None:
    """Agreement of all submissions so far; None where the campaign has no judge."""
    judge = session.get(Judge, campaign.judge_id) if campaign.judge_id is not None else None
    if judge is None:
        return None
    tasks = session.execute(
        select(
            RankingItem.position,
            RankingTask.suggestion_visible,
            RankingTask.shown,
            RankingTask.ranks,
            RankingTask.criteria_ranks,
        )
        .join(RankingItem, RankingItem.id == RankingTask.item_id)
        .where(RankingTask.campaign_id == campaign.id, RankingTask.state == "submitted")
    ).all()
    views = judge_views(session, judge.id, campaign.entrants, sorted({task.position for task in tasks}))
    agreed: dict[bool, list[tuple[int, list[float]]]] = {True: [], False: []}
    for task in tasks:
        if task.position in views:
            agreed[bool(task.suggestion_visible)].append(
                (task.position, [*right_pairs(task, views[task.position].ranks)])
            )
    return SuggestionQuality(judge=judge.name, visible=_agreement(agreed[True]), hidden=_agreement(agreed[False]))


def _agreement(submissions: Sequence[tuple[int, Sequence[float]]]) -> JudgeAgreement:
    share = share_of_pairs(submissions)
    return JudgeAgreement(submissions=len(submissions), pairs=share.n, **fields("agreement", share))
