"""Reads what people did in an evaluation's campaigns."""

from __future__ import annotations

import uuid
from collections import defaultdict
from typing import Any, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import User
from steerboard.evaluation.ranking.counted import Counted, counted
from steerboard.evaluation.ranking.tables import Campaign, RankingItem, RankingTask
from steerboard.evaluation.report.data import CampaignFacts, Ranking, TaskCounts
from steerboard.evaluation.tables import Evaluation
from steerboard_contracts.report.sections.human import TaskType


def campaigns_of(
    session: Session, evaluation: Evaluation, rows: dict[int, int], columns: dict[uuid.UUID, int]
) -> list[CampaignFacts]:
    """The campaigns by age; corrections compare nothing. `rows` by prompt position, `columns` by entrant."""
    compared = Campaign.task_type != "correction"
    campaigns = session.scalars(
        select(Campaign).where(Campaign.evaluation_id == evaluation.id, compared).order_by(Campaign.id)
    ).all()
    if not campaigns:
        return []
    ids = [campaign.id for campaign in campaigns]
    items: dict[uuid.UUID, list[Any]] = defaultdict(list)
    for item in session.execute(
        select(RankingItem.campaign_id, RankingItem.position, RankingItem.gold)
        .where(RankingItem.campaign_id.in_(ids))
        .order_by(RankingItem.campaign_id, RankingItem.position)
    ):
        items[item.campaign_id].append(item)
    tasks: dict[uuid.UUID, list[Any]] = defaultdict(list)
    for task in session.execute(
        select(
            RankingTask.campaign_id,
            RankingItem.position,
            User.name,
            RankingTask.state,
            RankingTask.shown,
            RankingTask.ranks,
            RankingTask.criteria_ranks,
            RankingTask.scores,
            RankingTask.both_bad,
            RankingTask.flag,
            RankingTask.seconds,
        )
        .join(RankingItem, RankingItem.id == RankingTask.item_id)
        .join(User, User.id == RankingTask.user_id)
        .where(RankingTask.campaign_id.in_(ids), RankingTask.state != "locked")
        .order_by(RankingTask.campaign_id, RankingItem.position, User.name, RankingTask.user_id)
    ):
        tasks[task.campaign_id].append(task)
    by_text = {str(id_): column for id_, column in columns.items()}
    return [
        _facts(campaign, items[campaign.id], tasks[campaign.id], list(counted(session, campaign)), rows, by_text)
        for campaign in campaigns
    ]


def _facts(
    campaign: Campaign,
    items: list[Any],
    tasks: list[Any],
    counts: list[Counted],
    rows: dict[int, int],
    columns: dict[str, int],
) -> CampaignFacts:
    people: dict[str, list[Any]] = defaultdict(list)
    for task in tasks:
        people[task.name].append(task)
    submitted = [task for task in tasks if task.state == "submitted"]
    return CampaignFacts(
        id=campaign.id,
        name=campaign.name,
        state=campaign.state,
        task_type=cast(TaskType, campaign.task_type),
        overlap=campaign.overlap,
        criteria=tuple(criterion["name"] for criterion in campaign.criteria),
        points={criterion["name"]: criterion["points"] for criterion in campaign.criteria if "points" in criterion},
        entrants=tuple(columns[id_] for id_ in campaign.entrants if id_ in columns),
        items=len(items),
        gold={
            rows[item.position]: {columns[id_]: float(rank) for id_, rank in item.gold.items() if id_ in columns}
            for item in items
            if item.gold and item.position in rows
        },
        rankings=_rankings([(task, task.name, False) for task in submitted], rows, columns),
        counted=_rankings([(count, count.by, count.adjudicated) for count in counts], rows, columns),
        counts={name: _counts(tasks_) for name, tasks_ in people.items()},
    )


def _counts(tasks: list[Any]) -> TaskCounts:
    return TaskCounts(
        skipped=sum(task.state == "skipped" for task in tasks),
        flagged=sum(task.flag is not None for task in tasks),
        seconds=tuple(task.seconds for task in tasks if task.state == "submitted" and task.seconds is not None),
    )


def _rankings(given: list[tuple[Any, str, bool]], rows: dict[int, int], columns: dict[str, int]) -> tuple[Ranking, ...]:
    made = (_ranking(task, by, adjudicated, rows, columns) for task, by, adjudicated in given)
    return tuple(ranking for ranking in made if ranking is not None)


def _ranking(task: Any, by: str, adjudicated: bool, rows: dict[int, int], columns: dict[str, int]) -> Ranking | None:
    """Returns None for what cannot be used: an entrant or a prompt that is gone, or nothing ranked."""
    if task.position not in rows or any(id_ not in columns for id_ in task.shown):
        return None
    given: dict[str | None, list[int] | None] = {None: task.ranks, **(task.criteria_ranks or {})}
    ranks = {name: tuple(values) for name, values in given.items() if values and len(values) == len(task.shown)}
    if not ranks:
        return None
    scores = {name: tuple(values) for name, values in (task.scores or {}).items()}
    shown = tuple(columns[id_] for id_ in task.shown)
    return Ranking(rows[task.position], by, shown, ranks, scores, task.both_bad, adjudicated)
