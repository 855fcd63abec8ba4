"""Answers made elsewhere become entrants: read twice, first to see what there is, then into the table by COPY."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import orjson
from sqlalchemy.orm import Session

from steerboard.datasets.rows.row_writer import copy_in
from steerboard.evaluation.entrants import service as entrants
from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.events import changed
from steerboard.evaluation.imports.matching import Entrants, Prompts
from steerboard.evaluation.imports.schemas import AnswersForm, AnswersImported
from steerboard.evaluation.queries import entrants_out
from steerboard.evaluation.tables import Entrant, Evaluation, Response
from steerboard.evaluation.unmatched import SKIPPED_SHOWN, LeftOut
from steerboard.platform.names import check_name, valid_name
from steerboard_contracts.decoding import MOST_SAMPLES
from steerboard_contracts.errors import BadInput
from steerboard_figures.formats.detection import ANSWERS, expect, read
from steerboard_figures.formats.records import Answer
from steerboard_files.records import Problem, Source

COPY_RESPONSES = "COPY evaluation_responses (entrant_id, position, sample, turns, tokens, finished) FROM STDIN"
# Reviews refer to answers by id; only the short files of the Vicuna announcement have such reviews.
_MOST_ANSWER_IDS = 1000

Place = tuple[str, int, int]
"""(model, position, sample)"""


@dataclass
class AnswersRead:
    """What the first reading saw. `newest`: the ordinal and time of the answer that counts at each place."""

    newest: dict[Place, tuple[int, float]] = field(default_factory=dict)
    samples: dict[str, int] = field(default_factory=dict)
    answer_ids: dict[str, list[str]] = field(default_factory=dict)
    rows: int = 0
    duplicates: int = 0


def import_answers(
    session: Session, evaluation: Evaluation, source: Source, form: AnswersForm, left_out: LeftOut | None = None
) -> AnswersImported:
    """Every model of the file enters with its answers. All or nothing is stored.

    Raises `RowsRefused`, `NothingMatches`, `NameTaken`, `BadInput`, and what reading the file raises.
    """
    left_out = left_out or LeftOut()
    format = expect(source, "answers", form.format)
    prompts = Prompts.of(session, evaluation)
    answers = _look(source, format, prompts, left_out)
    left_out.refuse_bad(form.bad_rows, answers.rows)
    left_out.refuse_nothing(source.label, len(answers.newest), "Import it into an evaluation of these prompts.")
    made = _enter(session, evaluation, answers, form, {"file": source.label, "format": format})
    prompts.again()
    short = _store(session, source, format, prompts, answers, made)
    changed(session, evaluation, "answers")
    return AnswersImported(
        format=format,
        entrants=entrants_out(session, evaluation, list(made.values())),
        rows=answers.rows,
        matched=len(answers.newest),
        unmatched=left_out.unmatched,
        unmatched_rows=left_out.unmatched_rows,
        duplicates=answers.duplicates,
        short=short,
        skipped=left_out.bad.kept[:SKIPPED_SHOWN],
        skipped_rows=left_out.bad.total,
    )


def _look(source: Source, format: str, prompts: Prompts, left_out: LeftOut) -> AnswersRead:
    listed = AnswersRead()
    before: Counter[str] = Counter()
    ordinal = 0
    for line, row in read(source, ANSWERS[format]):
        listed.rows += 1
        if isinstance(row, Problem):
            left_out.unreadable(line, row)
            continue
        answers: list[Answer] = row
        problem = _too_many(answers)
        if problem is not None:
            left_out.unreadable(line, problem)
            continue
        model = answers[0].model
        place = before[model] if not left_out.bad.total else None
        position = prompts.find(answers[0].question_id, answers[0].prompt, place, model)
        before[model] += 1
        if position is None:
            left_out.no_match(line, model, answers[0].question_id, _no_prompt(answers[0].question_id))
            continue
        for answer in answers:
            taken = model, position, answer.sample
            at = answer.at if answer.at is not None else -1.0
            if taken in listed.newest:
                listed.duplicates += 1
            if taken not in listed.newest or at >= listed.newest[taken][1]:
                listed.newest[taken] = ordinal, at
            ordinal += 1
            listed.samples[model] = max(listed.samples.get(model, 1), answer.sample + 1)
        ids = listed.answer_ids.setdefault(model, [])
        if answers[0].answer_id is not None and len(ids) < _MOST_ANSWER_IDS:
            ids.append(answers[0].answer_id)
    return listed


def _too_many(answers: list[Answer]) -> Problem | None:
    if len(answers) <= MOST_SAMPLES:
        return None
    return Problem("bad_row", f"has {len(answers)} answers to one prompt; at most {MOST_SAMPLES} are kept")


def _no_prompt(question_id: str | None) -> str:
    if question_id is None:
        return "names no question, and neither its text nor its position matches a prompt"
    return f"is about question {question_id}, which is not one of the prompts"


def _enter(
    session: Session, evaluation: Evaluation, answers: AnswersRead, form: AnswersForm, imported: dict[str, Any]
) -> dict[str, Entrant]:
    """{model: its entrant}. One without answers, entered by judgments, gets them now."""
    models = list(dict.fromkeys(model for model, _, _ in answers.newest))
    if form.name is not None and len(models) > 1:
        raise BadInput(
            f"the file has answers of {len(models)} models ({', '.join(models[:5])}): not all can be {form.name!r}",
            code="several_models",
            hint="Leave `name` out: each is named by its model.",
        )
    there = Entrants(entrants_of(session, evaluation))
    made: dict[str, Entrant] = {}
    for model in models:
        ids = answers.answer_ids[model]
        origin = {
            **imported,
            "model": model,
            "answers": sum(name == model for name, _, _ in answers.newest),
            **({"answer_ids": ids} if ids and len(ids) < _MOST_ANSWER_IDS else {}),
        }
        name = check_name(form.name) if form.name else valid_name(model)
        known = there.find(name)
        if known is not None and known.source == "import" and not (known.imported or {}).get("answers"):
            known.imported, known.samples = origin, answers.samples[model]
            made[model] = known
            continue
        made[model] = enter(session, evaluation, name, model, form.family, origin, answers.samples[model])
        there.add(made[model])
    session.flush()
    return made


def enter(
    session: Session,
    evaluation: Evaluation,
    name: str,
    model: str,
    family: str | None,
    imported: dict[str, Any],
    samples: int = 1,
) -> Entrant:
    """A new entrant whose answers come from a file. Raises `NameTaken`, `BadInput` (`too_many_entrants`)."""
    position = entrants.next_position(session, evaluation)
    entrants.check_free(session, evaluation, name)
    entrant = Entrant(
        evaluation_id=evaluation.id,
        position=position,
        name=name,
        source="import",
        family=family or entrants.family_of(model),
        decoding={},
        samples=samples,
        imported=imported,
    )
    session.add(entrant)
    session.flush()
    return entrant


def _store(
    session: Session, source: Source, format: str, prompts: Prompts, answers: AnswersRead, made: dict[str, Entrant]
) -> int:
    """Returns how many answers have fewer turns than their prompt."""
    kept = {ordinal for ordinal, _ in answers.newest.values()}
    before: Counter[str] = Counter()
    unread = False
    ordinal = short = 0
    with copy_in(session, COPY_RESPONSES) as copy:
        for _, row in read(source, ANSWERS[format]):
            if isinstance(row, Problem) or _too_many(row) is not None:
                unread = True
                continue
            model = row[0].model
            place = before[model] if not unread else None
            position = prompts.find(row[0].question_id, row[0].prompt, place, model)
            before[model] += 1
            if position is None:
                continue
            for answer in row:
                if ordinal in kept:
                    turns = answer.turns[: prompts.turns[position]]
                    short += len(turns) < prompts.turns[position]
                    tokens = orjson.dumps(answer.tokens[: len(turns)]).decode() if answer.tokens else None
                    copy.write_row((made[model].id, position, answer.sample, _json(turns), tokens, None))
                ordinal += 1
    return short


def add_response(session: Session, entrant: Entrant, position: int, text: str) -> None:
    """An answer that a file of judgments repeats."""
    session.add(Response(entrant_id=entrant.id, position=position, sample=0, turns=[text], tokens=None, finished=None))


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
