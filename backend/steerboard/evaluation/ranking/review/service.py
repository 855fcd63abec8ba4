"""A reviewer decides where annotators disagree. The decision counts, and everything stays in sight."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import exists, func, select, update
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project, User
from steerboard.evaluation.ranking.annotations import annotation_of
from steerboard.evaluation.ranking.keys import KEYS
from steerboard.evaluation.ranking.presenters import CampaignRow
from steerboard.evaluation.ranking.questions import Question, questions_of
from steerboard.evaluation.ranking.queue import shuffled
from steerboard.evaluation.ranking.review.schemas import Opinion, Review, ReviewItem
from steerboard.evaluation.ranking.schemas import Annotation, TaskAnswer, TaskPrompt
from steerboard.evaluation.ranking.spans import spans_by_key, spans_by_task
from steerboard.evaluation.ranking.tables import Campaign, RankingDecision, RankingItem, RankingSpan, RankingTask
from steerboard.evaluation.tables import EvaluationPrompt, Response
from steerboard.platform.http.errors import NotFound

_LATEST = RankingDecision.superseded.is_(False)
_DECIDED = exists().where(RankingDecision.item_id == RankingItem.id, _LATEST)


@dataclass(frozen=True)
class _TaskFormat:
    task_type: str
    answers: int
    points: dict[str, int | None]
    questions: list[Question]


def campaign_of(session: Session, project: Project, campaign_id: uuid.UUID) -> Campaign:
    """Raises `NotFound` (`unknown_campaign`)."""
    campaign = session.get(Campaign, campaign_id)
    if campaign is None or campaign.project_id != project.id:
        raise NotFound(
            "there is no such campaign", code="unknown_campaign", hint="The page Annotate lists those open to you."
        )
    return campaign


def review(session: Session, row: CampaignRow, campaign: Campaign, reviewer: uuid.UUID, limit: int) -> Review:
    contested = (RankingItem.campaign_id == campaign.id) & (RankingItem.disagreement > 0) & RankingItem.gold.is_(None)
    count = session.scalar(select(func.count()).where(contested, ~_DECIDED)) or 0
    decided = session.scalar(select(func.count()).where(RankingDecision.campaign_id == campaign.id, _LATEST)) or 0
    items = session.scalars(
        select(RankingItem)
        .where(contested, ~_DECIDED)
        .order_by(RankingItem.disagreement.desc(), RankingItem.id)
        .limit(limit)
    ).all()
    return Review(
        campaign=campaign.name,
        task_type=row.task_type,
        instructions=campaign.instructions,
        criteria=row.criteria,
        questions=row.questions,
        open=count,
        decided=decided,
        items=review_items(session, campaign, reviewer, items),
    )


def review_items(
    session: Session, campaign: Campaign, reviewer: uuid.UUID, items: Sequence[RankingItem]
) -> list[ReviewItem]:
    """The items in the order given."""
    ids, positions = [item.id for item in items], [item.position for item in items]
    prompts = {
        prompt.position: prompt
        for prompt in session.scalars(
            select(EvaluationPrompt).where(
                EvaluationPrompt.evaluation_id == campaign.evaluation_id, EvaluationPrompt.position.in_(positions)
            )
        )
    }
    entrants = [uuid.UUID(entrant) for entrant in campaign.entrants]
    answers: dict[tuple[int, str], list[str]] = {
        (position, str(entrant)): turns
        for position, entrant, turns in session.execute(
            select(Response.position, Response.entrant_id, Response.turns).where(
                Response.entrant_id.in_(entrants), Response.position.in_(positions), Response.sample == 0
            )
        )
    }
    annotators: dict[uuid.UUID, list[tuple[RankingTask, str]]] = defaultdict(list)
    for task, name in session.execute(
        select(RankingTask, User.name)
        .join(User, User.id == RankingTask.user_id)
        .where(RankingTask.item_id.in_(ids), RankingTask.state == "submitted")
        .order_by(User.name)
    ):
        annotators[task.item_id].append((task, name))
    decisions: dict[uuid.UUID, tuple[RankingDecision, str]] = {
        decision.item_id: (decision, name)
        for decision, name in session.execute(
            select(RankingDecision, User.name)
            .join(User, User.id == RankingDecision.user_id)
            .where(RankingDecision.item_id.in_(ids), _LATEST)
        )
    }
    spans = spans_by_task(session, [task.id for tasks in annotators.values() for task, _ in tasks])
    made = []
    for item in items:
        shown = shuffled(campaign.entrants, campaign.salt, item.id, reviewer)
        prompt, decision = prompts[item.position], decisions.get(item.id)
        made.append(
            ReviewItem(
                id=item.id,
                prompt=TaskPrompt(messages=prompt.messages, follow_ups=prompt.follow_ups),
                answers=[
                    TaskAnswer(key=key, turns=answers[item.position, entrant])
                    for key, entrant in zip(KEYS, shown, strict=False)
                ],
                disagreement=item.disagreement or 0.0,
                annotators=[_opinion(task, name, shown, spans[task.id]) for task, name in annotators[item.id]],
                decision=_opinion(*decision, shown) if decision else None,
            )
        )
    return made


def _opinion(
    row: RankingTask | RankingDecision, by: str, shown: list[str], spans: Sequence[RankingSpan] = ()
) -> Opinion:
    def keyed(values: list[int]) -> dict[str, int]:
        given = dict(zip(row.shown, values, strict=True))
        return {key: given[entrant] for key, entrant in zip(KEYS, shown, strict=False)}

    task = row if isinstance(row, RankingTask) else None
    return Opinion(
        by=by,
        ranks=keyed(row.ranks) if row.ranks else None,
        criteria_ranks={name: keyed(values) for name, values in (row.criteria_ranks or {}).items()},
        scores={name: keyed(values) for name, values in (row.scores or {}).items()},
        both_bad=row.both_bad,
        correction=row.correction,
        replies=row.replies or {},
        comment=row.comment,
        flag=task.flag if task else None,
        spans=spans_by_key(spans, shown),
        at=task.submitted_at if task else row.created_at,
    )


def decide(session: Session, campaign: Campaign, reviewer: uuid.UUID, item_id: uuid.UUID, given: Annotation) -> None:
    """Replaces an earlier decision, which is kept. Raises `NotFound` (`unknown_item`), and like `annotation_of`."""
    item = _locked(session, campaign, item_id)
    points = {criterion["name"]: criterion.get("points") for criterion in campaign.criteria}
    columns = annotation_of(
        given, _TaskFormat(campaign.task_type, len(campaign.entrants), points, questions_of(campaign.questions))
    )
    _supersede(session, item)
    session.add(
        RankingDecision(
            campaign_id=campaign.id,
            item_id=item.id,
            user_id=reviewer,
            shown=shuffled(campaign.entrants, campaign.salt, item.id, reviewer),
            comment=given.comment or None,
            **columns,
        )
    )
    session.flush()


def withdraw(session: Session, campaign: Campaign, item_id: uuid.UUID) -> None:
    """What annotators submitted counts again. Raises `NotFound` (`unknown_item`)."""
    _supersede(session, _locked(session, campaign, item_id))


def _locked(session: Session, campaign: Campaign, item_id: uuid.UUID) -> RankingItem:
    item = session.scalar(
        select(RankingItem)
        .where(RankingItem.id == item_id, RankingItem.campaign_id == campaign.id)
        .with_for_update(key_share=True)
    )
    if item is None:
        raise NotFound("the campaign has no such item", code="unknown_item", hint="Ask for the items to review.")
    return item


def _supersede(session: Session, item: RankingItem) -> None:
    session.execute(update(RankingDecision).where(RankingDecision.item_id == item.id, _LATEST).values(superseded=True))
