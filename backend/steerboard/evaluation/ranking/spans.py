"""Passages of answers that annotators flag: checked when they are submitted, and kept when they are taken back."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.evaluation.ranking.errors import BadSpans
from steerboard.evaluation.ranking.keys import KEYS
from steerboard.evaluation.ranking.schemas import MOST_SPANS, KeptSpanFlag, SpanFlag
from steerboard.evaluation.ranking.tables import Campaign, RankingSpan, RankingTask
from steerboard.platform.http.errors import NotFound
from steerboard.platform.statements import Statement

_ANSWERS = Statement("""
    SELECT t.shown, c.span_labels, (
        SELECT jsonb_object_agg(r.entrant_id, r.turns) FROM evaluation_responses r
        WHERE r.position = i.position AND r.sample = 0
          AND r.entrant_id IN (SELECT CAST(entrant AS uuid) FROM jsonb_array_elements_text(t.shown) entrant)
    ) AS turns
    FROM ranking_tasks t JOIN ranking_items i ON i.id = t.item_id JOIN ranking_campaigns c ON c.id = t.campaign_id
    WHERE t.id = :task""")


def check(session: Session, task_id: uuid.UUID, given: Sequence[SpanFlag]) -> None:
    """Raises `BadSpans` for a label that the campaign does not have, an answer or a turn that there is not, a passage
    that ends behind its text, the same flag twice, and too many of one answer."""
    if not given:
        return
    task = _ANSWERS(session, {"task": task_id}).one()
    answers = {key: task.turns[entrant] for key, entrant in zip(KEYS, task.shown, strict=False)}
    for place, span in enumerate(given):
        wrong = _fault(span, answers, task.span_labels)
        if wrong is None and any(_same(span, other) for other in given[:place]):
            wrong = "is flagged twice with one label", "Leave one of them out."
        if wrong is not None:
            passage = f"spans[{place}], {span.start} to {span.end} of answer {span.key},"
            raise BadSpans(f"{passage} {wrong[0]}", hint=wrong[1])
    key, number = Counter(span.key for span in given).most_common(1)[0]
    if number > MOST_SPANS:
        raise BadSpans(
            f"{number} passages of answer {key} are flagged", hint=f"Flag at most {MOST_SPANS} of each answer."
        )


def _fault(span: SpanFlag, answers: dict[str, list[str]], labels: Collection[str]) -> tuple[str, str] | None:
    """What is wrong, and what to do."""
    turns = answers.get(span.key, [])
    if span.turn > len(turns):
        return f"is of turn {span.turn}, and there are {len(turns)}", f"The answers: {', '.join(answers)}."
    if span.label not in labels:
        return f"has the unknown label {span.label!r}", f"The labels: {', '.join(labels) or 'none'}."
    # The text is a string of code points here, and so are the offsets.
    length = len(turns[span.turn - 1])
    if not span.start < span.end <= length:
        return (
            f"is not within the {length} characters of the text",
            "Count Unicode code points from the start of the turn; the end is behind the start.",
        )
    return None


def _same(span: SpanFlag, other: SpanFlag) -> bool:
    return span.model_copy(update={"note": None}) == other.model_copy(update={"note": None})


def store(session: Session, task_id: uuid.UUID, given: Sequence[SpanFlag]) -> None:
    """The flags of a task that is submitted, after `check`."""
    if not given:
        return
    shown = session.scalars(select(RankingTask.shown).where(RankingTask.id == task_id)).one()
    entrants = dict(zip(KEYS, shown, strict=False))
    session.add_all(
        RankingSpan(task_id=task_id, entrant_id=uuid.UUID(entrants[span.key]), **span.model_dump(exclude={"key"}))
        for span in given
    )


def take_back(session: Session, task: RankingTask) -> list[SpanFlag]:
    """The flags of a task whose submission is undone, for its draft; they are kept as removed."""
    kept = spans_by_task(session, [task.id])[task.id]
    session.execute(
        update(RankingSpan).where(RankingSpan.task_id == task.id, RankingSpan.removed.is_(False)).values(removed=True)
    )
    return [SpanFlag(**span.model_dump(exclude={"id"})) for span in spans_by_key(kept, task.shown)]


def remove(
    session: Session, project: Project, user_id: uuid.UUID, span_id: uuid.UUID, *, reviewer: bool
) -> uuid.UUID | None:
    """The evaluation that has changed; None where the flag was removed before. Raises `NotFound` (`unknown_span`), also
    for someone else's flag unless the caller is a reviewer."""
    query = select(RankingSpan, Campaign.evaluation_id).where(
        RankingSpan.id == span_id, Campaign.project_id == project.id
    )
    if not reviewer:
        query = query.where(RankingTask.user_id == user_id)
    row = session.execute(
        query.join(RankingTask, RankingTask.id == RankingSpan.task_id)
        .join(Campaign, Campaign.id == RankingTask.campaign_id)
        .with_for_update(of=RankingSpan)
    ).one_or_none()
    if row is None:
        raise NotFound("there is no such flag", code="unknown_span", hint="`GET rankings/mine` lists yours.")
    span, evaluation_id = row
    if span.removed:
        return None
    span.removed = True
    return uuid.UUID(str(evaluation_id))


def spans_by_task(session: Session, tasks: Sequence[uuid.UUID]) -> dict[uuid.UUID, list[RankingSpan]]:
    """Flags that were not removed, in the order of the text; none for other tasks."""
    spans: dict[uuid.UUID, list[RankingSpan]] = defaultdict(list)
    for span in session.scalars(
        select(RankingSpan)
        .where(RankingSpan.task_id.in_(tasks), RankingSpan.removed.is_(False))
        .order_by(RankingSpan.turn, RankingSpan.start, RankingSpan.end, RankingSpan.id)
    ):
        spans[span.task_id].append(span)
    return spans


def spans_by_key(spans: Sequence[RankingSpan], shown: Sequence[str]) -> list[KeptSpanFlag]:
    """The spans under the keys of a screen on which the entrants are in the order `shown`."""
    keys: dict[str, Any] = {entrant: key for key, entrant in zip(KEYS, shown, strict=False)}
    return [
        KeptSpanFlag(
            id=span.id,
            key=keys[str(span.entrant_id)],
            turn=span.turn,
            start=span.start,
            end=span.end,
            label=span.label,
            note=span.note,
        )
        for span in spans
        if str(span.entrant_id) in keys
    ]
