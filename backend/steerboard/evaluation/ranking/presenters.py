"""Tasks and campaigns as an annotator sees them: answers under keys by shown order, nothing about who wrote them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from sqlalchemy import exists, func, or_, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.evaluation.ranking.campaigns.schemas import CampaignState, Criterion, TaskType
from steerboard.evaluation.ranking.keys import KEYS
from steerboard.evaluation.ranking.locks import LIVE
from steerboard.evaluation.ranking.progress import progress
from steerboard.evaluation.ranking.qualification import Qualification, qualification
from steerboard.evaluation.ranking.questions import Question, questions_of
from steerboard.evaluation.ranking.schemas import (
    Draft,
    KeptSpanFlag,
    MyTask,
    OpenCampaign,
    Suggestion,
    Task,
    TaskAnswer,
    TaskPrompt,
)
from steerboard.evaluation.ranking.spans import spans_by_key, spans_by_task
from steerboard.evaluation.ranking.suggestions import JudgeView, judge_views
from steerboard.evaluation.ranking.tables import Campaign, RankingItem, RankingTask
from steerboard.evaluation.tables import EvaluationPrompt
from steerboard.platform.http.errors import NotFound
from steerboard.platform.statements import Statement

_EXCERPT = 200

_COLUMNS = (
    *("id", "evaluation_id", "task_type", "state", "overlap", "gold_every", "qualify_items", "qualify_share"),
    *("entrants", "salt", "criteria", "questions", "span_labels", "judge_id"),
)
_FROM = "FROM ranking_campaigns WHERE id = :campaign AND project_id = :project"
_CAMPAIGN = Statement(f"SELECT {', '.join(_COLUMNS)} {_FROM}")
_ALONE = Statement(f"SELECT {', '.join(_COLUMNS)}, pg_advisory_xact_lock(:alone) {_FROM}")
_TASKS = """
    SELECT t.id, t.shown, t.draft, t.locked_until, i.position, p.messages, p.follow_ups, (
        SELECT jsonb_object_agg(r.entrant_id, r.turns) FROM evaluation_responses r
        WHERE r.entrant_id = ANY(CAST(:entrants AS uuid[])) AND r.position = i.position AND r.sample = 0
    ) AS turns
    FROM ranking_tasks t JOIN ranking_items i ON i.id = t.item_id JOIN ranking_campaigns c ON c.id = t.campaign_id
    JOIN evaluation_prompts p ON p.evaluation_id = c.evaluation_id AND p.position = i.position
    WHERE t.campaign_id = :campaign AND {where}"""
_AT_HAND = Statement(_TASKS.format(where=f"t.user_id = :user AND {LIVE} ORDER BY t.created_at LIMIT :limit"))
_ONE = Statement(_TASKS.format(where="t.id = :task"))


@dataclass(frozen=True)
class CampaignRow:
    """What the queue needs of a campaign."""

    id: uuid.UUID
    evaluation_id: uuid.UUID
    task_type: TaskType
    state: str
    overlap: int
    gold_every: int
    qualify_items: int
    qualify_share: float
    entrants: list[str]
    salt: str
    criteria: list[Criterion]
    questions: list[Question]
    span_labels: list[str]
    judge_id: uuid.UUID | None


def campaign_row(session: Session, project: Project, campaign_id: uuid.UUID, alone: int | None = None) -> CampaignRow:
    """Raises `NotFound` (`unknown_campaign`). With `alone` it waits for all other transactions of that number."""
    given = {"campaign": campaign_id, "project": project.id}
    row = (_CAMPAIGN(session, given) if alone is None else _ALONE(session, given | {"alone": alone})).one_or_none()
    if row is None:
        raise NotFound(
            "there is no such campaign",
            code="unknown_campaign",
            hint="The page Annotate, or GET rankings, lists those that are open to you.",
        )
    criteria = [Criterion.model_validate(criterion) for criterion in row.criteria]
    named = {name: getattr(row, name) for name in _COLUMNS}
    return CampaignRow(**named | {"criteria": criteria, "questions": questions_of(row.questions)})


def qualification_in(session: Session, campaign: CampaignRow, user_id: uuid.UUID) -> Qualification:
    return qualification(session, campaign.id, campaign.qualify_items, campaign.qualify_share, user_id)


def tasks_at_hand(session: Session, campaign: CampaignRow, user_id: uuid.UUID, limit: int) -> list[Task]:
    """The annotator's tasks whose lock is live, oldest first."""
    return _tasks(session, campaign, _AT_HAND, {"user": user_id, "limit": limit})


def task_out(session: Session, campaign: CampaignRow, task_id: uuid.UUID) -> Task:
    """A task that is locked."""
    return _tasks(session, campaign, _ONE, {"task": task_id})[0]


def _tasks(session: Session, campaign: CampaignRow, query: Statement, given: dict[str, Any]) -> list[Task]:
    rows = query(session, given | {"campaign": campaign.id, "entrants": campaign.entrants}).all()
    views = judge_views(session, campaign.judge_id, campaign.entrants, [task.position for task in rows])
    return [
        Task(
            id=task.id,
            task_type=campaign.task_type,
            prompt=TaskPrompt(messages=task.messages, follow_ups=task.follow_ups),
            answers=[
                TaskAnswer(key=key, turns=task.turns[entrant]) for key, entrant in zip(KEYS, task.shown, strict=False)
            ],
            criteria=campaign.criteria,
            questions=campaign.questions,
            span_labels=campaign.span_labels,
            suggestion=_suggestion(views.get(task.position), task.shown),
            draft=Draft.model_validate(task.draft) if task.draft else None,
            locked_until=task.locked_until,
        )
        for task in rows
    ]


def _suggestion(view: JudgeView | None, shown: Sequence[str]) -> Suggestion | None:
    """The suggestion under the keys of a screen on which the entrants are in the order `shown`."""
    if view is None:
        return None
    ranks, keys = view.ranks, dict(zip(KEYS, shown, strict=False))
    return Suggestion(
        ranks={key: ranks[entrant] for key, entrant in keys.items()},
        scores={key: round(view.values[entrant], 2) for key, entrant in keys.items()} if view.scored else None,
    )


def open_campaigns(session: Session, project: Project, user_id: uuid.UUID) -> list[OpenCampaign]:
    """Oldest first; closed ones where the person has ranked or skipped something."""
    took_part = exists().where(RankingTask.campaign_id == Campaign.id, RankingTask.user_id == user_id)
    campaigns = session.scalars(
        select(Campaign)
        .where(Campaign.project_id == project.id, or_(Campaign.state != "closed", took_part))
        .order_by(Campaign.id)
    )
    return [_open_campaign(session, campaign, user_id) for campaign in campaigns]


def _open_campaign(session: Session, campaign: Campaign, user_id: uuid.UUID) -> OpenCampaign:
    items, done = session.execute(
        select(func.count(), func.count().filter(RankingItem.rankings >= campaign.overlap)).where(
            RankingItem.campaign_id == campaign.id
        )
    ).one()
    own = progress(session, campaign.id, user_id)
    return OpenCampaign(
        id=campaign.id,
        name=campaign.name,
        task_type=cast(TaskType, campaign.task_type),
        instructions=campaign.instructions,
        state=cast(CampaignState, campaign.state),
        criteria=[Criterion.model_validate(criterion) for criterion in campaign.criteria],
        answers=len(campaign.entrants),
        items=items,
        done=done,
        mine_done=own.done,
        mine_skipped=own.skipped,
        left_for_me=own.left if campaign.state != "closed" else 0,
    )


def my_tasks(
    session: Session, project: Project, user_id: uuid.UUID, campaign_id: uuid.UUID | None, limit: int
) -> list[MyTask]:
    """Newest first."""
    query = (
        select(RankingTask, EvaluationPrompt)
        .join(Campaign, Campaign.id == RankingTask.campaign_id)
        .join(RankingItem, RankingItem.id == RankingTask.item_id)
        .join(
            EvaluationPrompt,
            (EvaluationPrompt.evaluation_id == Campaign.evaluation_id)
            & (EvaluationPrompt.position == RankingItem.position),
        )
        .where(RankingTask.user_id == user_id, RankingTask.state != "locked", Campaign.project_id == project.id)
        .order_by(RankingTask.submitted_at.desc(), RankingTask.id)
        .limit(limit)
    )
    if campaign_id is not None:
        query = query.where(RankingTask.campaign_id == campaign_id)
    rows = session.execute(query).all()
    spans = spans_by_task(session, [task.id for task, _ in rows])
    return [_my_task(task, prompt, spans_by_key(spans[task.id], task.shown)) for task, prompt in rows]


def _my_task(task: RankingTask, prompt: EvaluationPrompt, spans: list[KeptSpanFlag]) -> MyTask:
    assert task.submitted_at is not None
    return MyTask(
        id=task.id,
        campaign=task.campaign_id,
        state=cast(Literal["submitted", "skipped"], task.state),
        prompt=[*(m["content"] for m in prompt.messages), *prompt.follow_ups][-1][:_EXCERPT],
        ranks=by_key(task.ranks),
        criteria_ranks=by_keys(task.criteria_ranks),
        comment=task.comment,
        flag=task.flag,
        skip_reason=task.skip_reason,
        spans=spans,
        at=task.submitted_at,
    )


def by_key(ranks: list[int] | None) -> dict[str, int] | None:
    """Ranks in the order shown, under the keys of the screen."""
    return dict(zip(KEYS, ranks, strict=False)) if ranks else None


def by_keys(values: dict[str, list[int]] | None) -> dict[str, dict[str, int]]:
    """The same for each criterion."""
    return {criterion: by_key(given) or {} for criterion, given in (values or {}).items()}
