"""One item as the API shows it: the prompt, its answers, and what judges and people said of them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

import numpy as np
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import User
from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.items.filters import ItemFilters
from steerboard.evaluation.items.queries import items_of
from steerboard.evaluation.items.schemas import ItemDetail, ItemRanking, ItemVerdict
from steerboard.evaluation.judge_tables import Judge, Verdict
from steerboard.evaluation.judges.presenters import verdict_out
from steerboard.evaluation.judges.schemas import JudgeStyle
from steerboard.evaluation.prompt_pages import prompt_page
from steerboard.evaluation.ranking.campaigns.span_rows import named_spans
from steerboard.evaluation.ranking.tables import Campaign, RankingItem, RankingTask
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.http.errors import NotFound
from steerboard.platform.row_sizes import ROWS_AT_ONCE, take

_MOST_VERDICTS = 300


def item(session: Session, evaluation: Evaluation, position: int, filters: ItemFilters) -> ItemDetail:
    """Raises `NotFound` (`unknown_item`, `unknown_entrant`, `unknown_source`)."""
    items = items_of(session, evaluation.id, filters)
    prompts = prompt_page(session, evaluation, after=position - 1, limit=1, seen=None, category=None, whole=False).items
    if not prompts or prompts[0].position != position:
        raise NotFound(f"{evaluation.name} has no prompt at position {position}", code="unknown_item")
    names = {entrant.id: entrant.name for entrant in entrants_of(session, evaluation)}
    shown = {id_ for id_, name in names.items() if name in (filters.a, filters.b)} if filters.pair else None
    verdicts, more = _verdicts(session, evaluation, position, names, shown)
    row = items.row_at(position)
    # A prompt that the report does not have has a place among the positions alone.
    here = int(np.searchsorted(items.positions, position)) if row is None else items.place_behind(position) - 1
    fits = items.fitting[items.ordered]
    among = row is not None and bool(fits[here])
    before, behind = np.flatnonzero(fits[:here]), np.flatnonzero(fits[here:]) + here
    behind = behind[1:] if among else behind
    at = items.positions[items.ordered]
    return ItemDetail(
        number=len(before) + 1 if among else None,
        total=int(fits.sum()),
        previous=int(at[before[-1]]) if len(before) else None,
        next=int(at[behind[0]]) if len(behind) else None,
        prompt=prompts[0],
        outcomes=items.outcomes_at(row),
        verdicts=verdicts,
        more_verdicts=more,
        rankings=_rankings(session, evaluation, position, names),
    )


def _verdicts(
    session: Session,
    evaluation: Evaluation,
    position: int,
    names: dict[uuid.UUID, str],
    shown: set[uuid.UUID] | None,
) -> tuple[list[ItemVerdict], bool]:
    """Verdicts by judge, of those entrants alone where there are some; whether there are more."""
    query = (
        select(Verdict, Judge.name, Judge.style)
        .join(Judge, Judge.id == Verdict.judge_id)
        .where(Judge.evaluation_id == evaluation.id, Verdict.position == position, ~Verdict.superseded)
        .order_by(Judge.id, Verdict.turn, Verdict.id)
        .execution_options(yield_per=ROWS_AT_ONCE)
    )
    if shown is not None:
        query = query.where(Verdict.a.in_(shown), or_(Verdict.b.is_(None), Verdict.b.in_(shown)))
    page: list[tuple[Verdict, str, JudgeStyle]]
    page, more = take(session.execute(query), _MOST_VERDICTS)
    verdicts = [
        ItemVerdict(
            **verdict_out(row, names).model_dump(),
            judge=judge,
            judge_id=row.judge_id,
            style=style,
            called=row.answer_key is not None,
        )
        for row, judge, style in page
    ]
    return verdicts, more


def _rankings(
    session: Session, evaluation: Evaluation, position: int, names: dict[uuid.UUID, str]
) -> list[ItemRanking]:
    rows = session.execute(
        select(Campaign, User.name, RankingTask, RankingItem.gold)
        .join(RankingItem, RankingItem.campaign_id == Campaign.id)
        .join(RankingTask, RankingTask.item_id == RankingItem.id)
        .join(User, User.id == RankingTask.user_id)
        .where(
            Campaign.evaluation_id == evaluation.id,
            RankingItem.position == position,
            RankingTask.state.in_(("submitted", "skipped")),
        )
        .order_by(Campaign.id, User.name, RankingTask.id)
    ).all()
    spans = named_spans(session, [task.id for _, _, task, _ in rows])
    by_text = {str(id_): name for id_, name in names.items()}
    return [
        ItemRanking(
            campaign=campaign.name,
            task_type=campaign.task_type,
            annotator=annotator,
            state=task.state,
            ranks=_by_name(task.shown, task.ranks, by_text) if task.ranks else None,
            criteria_ranks=_by_criterion(task.shown, task.criteria_ranks, by_text),
            scores=_by_criterion(task.shown, task.scores, by_text),
            both_bad=task.both_bad,
            correction=task.correction,
            replies=task.replies or {},
            comment=task.comment,
            flag=task.flag,
            spans=spans.get(task.id, []),
            suggestion_visible=task.suggestion_visible,
            skip_reason=task.skip_reason,
            seconds=task.seconds,
            gold={by_text[id_]: rank for id_, rank in gold.items() if id_ in by_text} if gold else None,
        )
        for campaign, annotator, task, gold in rows
    ]


def _by_criterion(
    shown: Sequence[str], given: Mapping[str, Sequence[int]] | None, names: dict[str, str]
) -> dict[str, dict[str, int]]:
    return {criterion: _by_name(shown, values, names) for criterion, values in (given or {}).items()}


def _by_name(shown: Sequence[str], ranks: Sequence[int], names: dict[str, str]) -> dict[str, int]:
    """The ranks by name, without entrants that were deleted."""
    return {names[id_]: rank for id_, rank in zip(shown, ranks, strict=False) if id_ in names}
