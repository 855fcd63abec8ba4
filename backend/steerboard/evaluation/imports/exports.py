"""Answers and judgments written in the formats of other projects, row by row, so that they can be imported again."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator
from itertools import groupby, zip_longest
from typing import Any, BinaryIO

import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.judge_tables import Judge, Verdict
from steerboard.evaluation.tables import Entrant, Evaluation, EvaluationPrompt, Response
from steerboard_contracts.errors import BadInput
from steerboard_figures.formats import alpaca_eval, arena_hard, fastchat, vicuna

_BATCH = 1000
# The first of each is what a judge of that style is written as unless another is asked for.
FORMATS_OF_STYLE = {
    "single": ("fastchat_single", "arena_bench"),
    "multi": ("fastchat_single", "vicuna_review"),
    "rubric": ("fastchat_single",),
    "pairwise": ("fastchat_pair",),
    "alpaca_eval": ("alpaca_eval",),
    "arena_hard": ("arena_hard",),
    # The one format with probabilities: a row for each order.
    "preference": ("alpaca_eval",),
}


class FormatTooNarrow(BadInput):
    """The format has no place for some of what would have to be written."""

    code = "format_too_narrow"
    title = "This format cannot represent it"


Rows = Iterator[dict[str, Any]]


def answer_rows(session: Session, evaluation: Evaluation, format: str, entrant: Entrant | None) -> Rows:
    """Rows of one entrant, or of all. Raises `FormatTooNarrow` immediately, not during iteration."""
    chosen = [entrant] if entrant is not None else list(entrants_of(session, evaluation))
    prompts = _prompts(session, evaluation)
    if format != "fastchat" and any(entrant.samples > 1 for entrant in chosen):
        raise FormatTooNarrow(f"{format} has one answer to a prompt, and some here have several", hint="Use fastchat.")
    if format == "alpaca_eval" and any(prompt.follow_ups for prompt in prompts.values()):
        raise FormatTooNarrow("alpaca_eval has one turn, and some prompts have more", hint="Use fastchat.")
    return (row for entrant in chosen for row in _answers_of(session, entrant, prompts, format))


def _answers_of(session: Session, entrant: Entrant, prompts: dict[int, EvaluationPrompt], format: str) -> Rows:
    query = select(Response.position, Response.sample, Response.turns, Response.tokens)
    stored = session.execute(
        query.where(Response.entrant_id == entrant.id)
        .order_by(Response.position, Response.sample)
        .execution_options(yield_per=_BATCH)
    )
    tstamp = entrant.created_at.timestamp()
    for position, responses in groupby(stored, key=lambda row: row.position):
        rows = list(responses)
        prompt, turns = prompts[position], [list(row.turns) for row in rows]
        answer_id = _answer_id(entrant.id, position)
        if format == "fastchat":
            row = fastchat.answer_row(prompt.question_id, answer_id, entrant.name, turns, tstamp)
        elif format == "alpaca_eval":
            row = alpaca_eval.answer_row(_instruction(prompt), entrant.name, turns[0][0], prompt.category)
        else:
            inputs = [_instruction(prompt), *prompt.follow_ups]
            tokens = sum(rows[0].tokens) if rows[0].tokens and len(turns[0]) == 1 else None
            row = arena_hard.answer_row(prompt.question_id, answer_id, entrant.name, inputs, turns[0], tokens, tstamp)
        # No format has a field for it, and their readers leave out what they do not know.
        yield row if entrant.score is None else {**row, "condition": entrant.score.plain()}


def judgment_rows(session: Session, evaluation: Evaluation, judge: Judge, format: str | None) -> tuple[str, Rows]:
    """(format, rows), superseded verdicts too. Raises `FormatTooNarrow`."""
    formats = FORMATS_OF_STYLE[judge.style]
    if format is None:
        reviews = (judge.imported or {}).get("format") == "vicuna_review"
        format = "vicuna_review" if reviews else formats[0]
    if format not in formats:
        raise FormatTooNarrow(
            f"judgments of style {judge.style} cannot be written as {format}", hint=f"Use {' or '.join(formats)}."
        )
    names = {entrant.id: entrant.name for entrant in entrants_of(session, evaluation)}
    prompts = _prompts(session, evaluation)
    order = (Verdict.position, Verdict.turn, Verdict.a, Verdict.b, Verdict.id)
    verdicts = session.scalars(
        select(Verdict)
        .where(Verdict.judge_id == judge.id)
        .order_by(*(order if format in ("fastchat_pair", "arena_hard") else (Verdict.id,)))
        .execution_options(yield_per=_BATCH)
    )
    if format in ("fastchat_single", "arena_bench"):
        return format, _singles(verdicts, names, prompts, judge.model, format)
    if format == "vicuna_review":
        _check_two(session, judge)
        return format, _reviews(verdicts, names, prompts, judge.model)
    if format == "alpaca_eval":
        return format, _annotations(session, verdicts, names, prompts, judge.model)
    return format, _games(verdicts, names, prompts, judge.model, format)


def _singles(
    judged: Iterable[Verdict],
    names: dict[uuid.UUID, str],
    prompts: dict[int, EvaluationPrompt],
    judge: str,
    format: str,
) -> Rows:
    for verdict in judged:
        prompt = prompts[verdict.position]
        row = fastchat.single_row(prompt.question_id, names[verdict.a], judge, _kept(verdict))
        if format == "arena_bench":
            row = {"question_id": prompt.question_id, "model": row["model"], "judgment": row["judgment"]}
            row["score"] = verdict.value
        yield row


def _games(
    judged: Iterable[Verdict],
    names: dict[uuid.UUID, str],
    prompts: dict[int, EvaluationPrompt],
    judge: str,
    format: str,
) -> Rows:
    """One row for both orders. Where an item was judged again, the first of each order belong together, and so on."""
    for (position, turn, a, b), verdicts in groupby(judged, key=lambda v: (v.position, v.turn, v.a, v.b)):
        every = list(verdicts)
        orders = [[verdict for verdict in every if (verdict.a_first is not False) is first] for first in (True, False)]
        models = names[a], names[b] if b is not None else ""
        for pair in zip_longest(*orders):
            games = {
                first: _kept(verdict) for first, verdict in zip((True, False), pair, strict=True) if verdict is not None
            }
            prompt = prompts[position]
            if format == "fastchat_pair":
                placed = {1 if first else 2: game for first, game in games.items()}
                yield fastchat.pair_row(prompt.question_id, models, judge, turn, placed)
            else:
                tstamp = max(game["tstamp"] for game in games.values())
                yield arena_hard.judgment_row(prompt.question_id, prompt.category, models, judge, games, tstamp)


def _check_two(session: Session, judge: Judge) -> None:
    judged = session.scalars(select(Verdict.a).where(Verdict.judge_id == judge.id).distinct()).all()
    if len(judged) != 2:
        raise FormatTooNarrow(f"a review compares two answers, and {judge.name} judged {len(judged)}")


def _reviews(
    judged: Iterable[Verdict], names: dict[uuid.UUID, str], prompts: dict[int, EvaluationPrompt], reviewer: str
) -> Rows:
    """Both answers' verdicts follow each other, as one request gave them."""
    waiting: dict[tuple[int, int], Verdict] = {}
    for verdict in judged:
        other = waiting.pop((verdict.position, verdict.turn), None)
        if other is None:
            waiting[verdict.position, verdict.turn] = verdict
            continue
        first, second = sorted((other, verdict), key=lambda either: either.a_first is False)
        models = names[first.a], names[second.a]
        ids = _answer_id(first.a, verdict.position), _answer_id(second.a, verdict.position)
        question_id, fields = prompts[verdict.position].question_id, (_kept(first), _kept(second))
        yield vicuna.review_row(question_id, models, ids, reviewer, fields)


def _answer_id(entrant: uuid.UUID, position: int) -> str:
    return hashlib.sha256(f"{entrant}:{position}".encode()).hexdigest()[:22]


def _annotations(
    session: Session,
    judged: Iterable[Verdict],
    names: dict[uuid.UUID, str],
    prompts: dict[int, EvaluationPrompt],
    judge: str,
) -> Rows:
    for batch in _batches(judged):
        positions = {verdict.position for verdict in batch}
        outputs = {
            (entrant_id, position): turns[0]
            for entrant_id, position, turns in session.execute(
                select(Response.entrant_id, Response.position, Response.turns).where(
                    Response.entrant_id.in_(names), Response.position.in_(positions), Response.sample == 0
                )
            )
        }
        for verdict in batch:
            prompt, b = prompts[verdict.position], verdict.b
            assert b is not None
            baseline = names[b], outputs.get((b, verdict.position))
            model = names[verdict.a], outputs.get((verdict.a, verdict.position))
            fields = _kept(verdict)
            yield alpaca_eval.annotation_row(_instruction(prompt), prompt.category, baseline, model, judge, fields)


def _batches(judged: Iterable[Verdict]) -> Iterator[list[Verdict]]:
    batch: list[Verdict] = []
    for verdict in judged:
        batch.append(verdict)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def write(rows: Rows, file: BinaryIO, as_array: bool) -> int:
    """JSON lines, or one JSON array with an element a line. Returns how many rows there were."""
    count = 0
    for row in rows:
        file.write((b",\n" if count else b"[\n") if as_array else b"")
        file.write(orjson.dumps(row) + (b"" if as_array else b"\n"))
        count += 1
    if as_array:
        file.write(b"\n]\n" if count else b"[]\n")
    return count


def _kept(verdict: Verdict) -> dict[str, Any]:
    fields = ("turn", "value", "weight", "status", "raw", "detail")
    return {**{name: getattr(verdict, name) for name in fields}, "tstamp": verdict.created_at.timestamp()}


def _prompts(session: Session, evaluation: Evaluation) -> dict[int, EvaluationPrompt]:
    query = select(EvaluationPrompt).where(EvaluationPrompt.evaluation_id == evaluation.id)
    return {prompt.position: prompt for prompt in session.scalars(query)}


def _instruction(prompt: EvaluationPrompt) -> str:
    return prompt.messages[-1]["content"]
