"""Pages of an evaluation's prompts with every response and its rewards, cut where texts are long."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.evaluation.schemas import PromptOut, PromptPage, ResponseOut, SeenOut
from steerboard.evaluation.tables import Entrant, Evaluation, EvaluationPrompt, Response, RewardAssessment, RewardValue
from steerboard.platform.row_sizes import PAGE_BYTES, ROW_BYTES, ROWS_AT_ONCE, shown_part, take, weight


def prompt_page(
    session: Session,
    evaluation: Evaluation,
    *,
    after: int,
    limit: int,
    seen: bool | None,
    category: str | None,
    whole: bool,
) -> PromptPage:
    """Prompts with all their responses and rewards, by position. `seen`: only those that training data has, or has
    not. `whole`: do not cut long texts, until there are too many of them."""
    query = select(EvaluationPrompt).where(
        EvaluationPrompt.evaluation_id == evaluation.id, EvaluationPrompt.position > after
    )
    if seen is not None:
        is_seen = func.coalesce(func.jsonb_typeof(EvaluationPrompt.seen) == "object", False)
        query = query.where(is_seen if seen else ~is_seen)
    if category is not None:
        query = query.where(EvaluationPrompt.category == category)
    query = query.order_by(EvaluationPrompt.position).execution_options(yield_per=ROWS_AT_ONCE)
    page, more = take(session.scalars(query), limit)
    responses, end = _responses(session, evaluation, [prompt.position for prompt in page], whole)
    shown = [prompt for prompt in page if end is None or prompt.position < end]
    items = [_prompt_out(prompt, responses[prompt.position], whole) for prompt in shown]
    return PromptPage(items=items, next=shown[-1].position if more or len(shown) < len(page) else None)


def _prompt_out(prompt: EvaluationPrompt, responses: list[ResponseOut], whole: bool) -> PromptOut:
    texts = {"messages": prompt.messages, "follow_ups": prompt.follow_ups, "reference": prompt.reference}
    cut = not whole and weight(texts) > ROW_BYTES
    return PromptOut(
        position=prompt.position,
        question_id=prompt.question_id,
        category=prompt.category,
        **(shown_part(texts) if cut else texts),
        seen=SeenOut.model_validate(prompt.seen) if prompt.seen else None,
        responses=responses,
        cut=cut,
    )


def _responses(
    session: Session, evaluation: Evaluation, positions: Sequence[int], whole: bool
) -> tuple[Mapping[int, list[ResponseOut]], int | None]:
    """Responses by position, and the position from which on they are too many for a page."""
    rewards: dict[tuple[uuid.UUID, int, int], dict[str, float]] = defaultdict(dict)
    values = session.execute(
        select(RewardValue, RewardAssessment.name)
        .join(RewardAssessment, RewardAssessment.id == RewardValue.assessment_id)
        .where(RewardAssessment.evaluation_id == evaluation.id, RewardValue.position.in_(positions))
        .order_by(RewardAssessment.id)
    )
    for value, name in values:
        rewards[(value.entrant_id, value.position, value.sample)][name] = value.value
    by_position: dict[int, list[ResponseOut]] = defaultdict(list)
    size = 0
    rows = session.execute(
        select(Response, Entrant.name)
        .join(Entrant, Entrant.id == Response.entrant_id)
        .where(Entrant.evaluation_id == evaluation.id, Response.position.in_(positions))
        .order_by(Response.position, Entrant.position, Entrant.id, Response.sample)
        .execution_options(yield_per=ROWS_AT_ONCE)
    )
    with closing(rows):
        for response, name in rows:
            if size >= PAGE_BYTES and response.position not in by_position and response.position != positions[0]:
                return by_position, response.position
            own = weight(response)
            size += own
            cut = own > ROW_BYTES and not (whole and size < 2 * PAGE_BYTES)
            by_position[response.position].append(
                ResponseOut(
                    entrant=name,
                    sample=response.sample,
                    turns=shown_part({"turns": response.turns})["turns"] if cut else response.turns,
                    tokens=response.tokens,
                    finished=response.finished,
                    rewards=rewards.get((response.entrant_id, response.position, response.sample), {}),
                    cut=cut,
                )
            )
    return by_position, None
