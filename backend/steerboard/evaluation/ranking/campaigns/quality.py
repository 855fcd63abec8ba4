"""How fast and how well the annotators of a campaign work."""

from __future__ import annotations

import uuid
from collections import defaultdict
from itertools import combinations
from statistics import fmean
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import User
from steerboard.evaluation.ranking.campaigns.quality_schemas import AnnotatorQuality, CampaignDay, CampaignQuality
from steerboard.evaluation.ranking.campaigns.question_counts import question_counts
from steerboard.evaluation.ranking.campaigns.shares import fields, share_of_pairs
from steerboard.evaluation.ranking.campaigns.span_rows import span_counts
from steerboard.evaluation.ranking.campaigns.suggestion_quality import suggestion_quality
from steerboard.evaluation.ranking.disagreement import between, opinion_of
from steerboard.evaluation.ranking.qualification import Qualification, qualifications, right_pairs
from steerboard.evaluation.ranking.tables import Campaign, RankingDecision, RankingItem, RankingTask
from steerboard_statistics.proportions import proportion_interval

_SAID = ("shown", "ranks", "criteria_ranks", "scores", "correction")
_DAYS = 60


def quality(session: Session, campaign: Campaign) -> CampaignQuality:
    """Everyone who was given an item, by name, and the last 60 days with submissions, newest first."""
    submitted = RankingTask.state == "submitted"
    people = session.execute(
        select(
            RankingTask.user_id,
            User.name,
            func.count().filter(submitted).label("done"),
            func.count().filter(RankingTask.state == "skipped").label("skipped"),
            func.count(RankingTask.flag).label("flagged"),
            func.sum(RankingTask.seconds).label("seconds"),
            func.percentile_cont(0.5).within_group(RankingTask.seconds).filter(submitted).label("median"),
            func.max(RankingTask.submitted_at).label("last_at"),
        )
        .join(User, User.id == RankingTask.user_id)
        .where(RankingTask.campaign_id == campaign.id)
        .group_by(RankingTask.user_id, User.name)
        .order_by(User.name)
    ).all()
    others, rulings, gold = _agreements(session, campaign)
    passed = qualifications(session, campaign.id, campaign.qualify_items, campaign.qualify_share)
    return CampaignQuality(
        annotators=[
            AnnotatorQuality(
                annotator=row.name,
                done=row.done,
                skipped=row.skipped,
                flagged=row.flagged,
                hours=round((row.seconds or 0.0) / 3600, 4),
                items_per_hour=row.done * 3600 / row.seconds if row.seconds else None,
                median_seconds=row.median,
                **_shares(others[row.user_id], rulings[row.user_id], gold[row.user_id]),
                qualification=passed.get(row.user_id, Qualification(needed=campaign.qualify_items)).state
                if campaign.qualify_items
                else None,
                last_at=row.last_at,
            )
            for row in people
        ],
        days=_days(session, campaign),
        spans=span_counts(session, campaign),
        questions=question_counts(session, campaign),
        suggestions=suggestion_quality(session, campaign),
    )


def _agreements(
    session: Session, campaign: Campaign
) -> tuple[
    dict[uuid.UUID, list[float]], dict[uuid.UUID, list[float]], dict[uuid.UUID, list[tuple[uuid.UUID, list[float]]]]
]:
    """Agreement by annotator with the others on each shared item, with the reviewer on each adjudicated item, and the
    pairs of each gold item."""
    points = {criterion["name"]: criterion.get("points") for criterion in campaign.criteria}
    tasks = session.execute(
        select(RankingTask.item_id, RankingTask.user_id, RankingItem.gold, *(getattr(RankingTask, c) for c in _SAID))
        .join(RankingItem, RankingItem.id == RankingTask.item_id)
        .where(RankingTask.campaign_id == campaign.id, RankingTask.state == "submitted")
    ).all()
    rulings = {
        row.item_id: opinion_of(row)
        for row in session.execute(
            select(RankingDecision.item_id, *(getattr(RankingDecision, c) for c in _SAID)).where(
                RankingDecision.campaign_id == campaign.id, RankingDecision.superseded.is_(False)
            )
        )
    }
    by_item = defaultdict(list)
    with_reviewers: dict[uuid.UUID, list[float]] = defaultdict(list)
    gold: dict[uuid.UUID, list[tuple[uuid.UUID, list[float]]]] = defaultdict(list)
    for task in tasks:
        opinion = opinion_of(task)
        by_item[task.item_id].append((task.user_id, opinion))
        if task.item_id in rulings:
            with_reviewers[task.user_id].append(1 - between(opinion, rulings[task.item_id], points))
        if task.gold:
            gold[task.user_id].append((task.item_id, [*right_pairs(task, task.gold)]))
    with_others: dict[uuid.UUID, list[float]] = defaultdict(list)
    for opinions in by_item.values():
        shares: dict[uuid.UUID, list[float]] = defaultdict(list)
        for (first, left), (other, right) in combinations(opinions, 2):
            agreed = 1 - between(left, right, points)
            shares[first].append(agreed)
            shares[other].append(agreed)
        for user, values in shares.items():
            with_others[user].append(fmean(values))
    return with_others, with_reviewers, gold


def _days(session: Session, campaign: Campaign) -> list[CampaignDay]:
    day = func.date(func.timezone("UTC", RankingTask.submitted_at)).label("day")
    rows = session.execute(
        select(
            day,
            func.count().label("submissions"),
            func.count(RankingTask.user_id.distinct()).label("annotators"),
            func.percentile_cont(0.5).within_group(RankingTask.seconds).label("median"),
        )
        .where(RankingTask.campaign_id == campaign.id, RankingTask.state == "submitted")
        .group_by(day)
        .order_by(day.desc())
        .limit(_DAYS)
    )
    return [
        CampaignDay(day=row.day, submissions=row.submissions, annotators=row.annotators, median_seconds=row.median)
        for row in rows
    ]


def _shares(others: list[float], rulings: list[float], gold: list[tuple[uuid.UUID, list[float]]]) -> dict[str, Any]:
    """The shares of one annotator."""
    with_others, with_reviewers = (proportion_interval(sum(values), len(values)) for values in (others, rulings))
    pairs = share_of_pairs(gold)
    return {
        **fields("agreement", with_others),
        "shared_items": len(others),
        **fields("agreement_with_reviewers", with_reviewers),
        "adjudicated_items": len(rulings),
        **fields("gold", pairs),
        "gold_pairs": pairs.n,
    }
