"""Flagged passages of answers with the entrants' names, for people who may know these."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, and_, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import User
from steerboard.evaluation.ranking.campaigns.quality_schemas import SpanCount
from steerboard.evaluation.ranking.campaigns.schemas import NamedSpanFlag, SpanFlagRow
from steerboard.evaluation.ranking.campaigns.service import entrant_names
from steerboard.evaluation.ranking.tables import Campaign, RankingItem, RankingSpan, RankingTask
from steerboard.evaluation.tables import Entrant, EvaluationPrompt, Response

_EXCERPT = 500


def named_spans(session: Session, tasks: Sequence[uuid.UUID]) -> dict[uuid.UUID, list[NamedSpanFlag]]:
    """The flags by task, in the order of the text."""
    made: dict[uuid.UUID, list[NamedSpanFlag]] = defaultdict(list)
    query = _spans().where(RankingSpan.task_id.in_(tasks), RankingSpan.removed.is_(False))
    for row in session.execute(query.order_by(Entrant.position, RankingSpan.turn, RankingSpan.start, RankingSpan.id)):
        made[row.RankingSpan.task_id].append(NamedSpanFlag(**_values(row)))
    return made


def span_rows(session: Session, spans: Sequence[RankingSpan]) -> list[SpanFlagRow]:
    """The rows in the order given."""
    about = _spans().add_columns(RankingItem.position, EvaluationPrompt.question_id, User.name.label("annotator"))
    about = (
        about.join(User, User.id == RankingTask.user_id)
        .join(Campaign, Campaign.id == RankingTask.campaign_id)
        .join(
            EvaluationPrompt,
            and_(
                EvaluationPrompt.evaluation_id == Campaign.evaluation_id,
                EvaluationPrompt.position == RankingItem.position,
            ),
        )
        .where(RankingSpan.id.in_([span.id for span in spans]))
    )
    rows = {
        row.RankingSpan.id: SpanFlagRow(
            **_values(row),
            position=row.position,
            question_id=row.question_id,
            annotator=row.annotator,
            at=row.RankingSpan.created_at,
        )
        for row in session.execute(about)
    }
    return [rows[span.id] for span in spans]


def spans_of(campaign: Campaign) -> Select[RankingSpan]:
    """The flags of a campaign that were not removed."""
    return (
        select(RankingSpan)
        .join(RankingTask, RankingTask.id == RankingSpan.task_id)
        .where(RankingTask.campaign_id == campaign.id, RankingSpan.removed.is_(False))
    )


def span_counts(session: Session, campaign: Campaign) -> list[SpanCount]:
    """The counts by label: the campaign's in its order, used or not, then others that it had before."""
    names = entrant_names(session, campaign)
    spans: dict[str, Counter[str]] = {label: Counter() for label in campaign.span_labels}
    items: dict[str, set[uuid.UUID]] = defaultdict(set)
    counted = spans_of(campaign).with_only_columns(RankingSpan.label, RankingSpan.entrant_id, RankingTask.item_id)
    for label, entrant, item in session.execute(counted.order_by(RankingSpan.label)):
        spans.setdefault(label, Counter())[str(entrant)] += 1
        items[label].add(item)
    return [
        SpanCount(
            label=label,
            spans=counts.total(),
            items=len(items[label]),
            by_entrant={name: counts[entrant] for entrant, name in names.items()},
        )
        for label, counts in spans.items()
    ]


def _spans() -> Any:
    """(span, entrant's name, turns of its answer), joined to the task and its item."""
    return (
        select(RankingSpan, Entrant.name.label("entrant"), Response.turns)
        .join(RankingTask, RankingTask.id == RankingSpan.task_id)
        .join(RankingItem, RankingItem.id == RankingTask.item_id)
        .join(Entrant, Entrant.id == RankingSpan.entrant_id)
        .join(
            Response,
            and_(
                Response.entrant_id == Entrant.id,
                Response.position == RankingItem.position,
                Response.sample == 0,
            ),
        )
    )


def _values(row: Any) -> dict[str, Any]:
    span = row.RankingSpan
    passage = row.turns[span.turn - 1][span.start : span.end]
    return {
        "id": span.id,
        "entrant": row.entrant,
        "turn": span.turn,
        "start": span.start,
        "end": span.end,
        "label": span.label,
        "note": span.note,
        "text": passage[:_EXCERPT],
    }
