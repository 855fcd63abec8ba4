"""Responses of an evaluation: made once, read by every assessment."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import delete, func, literal, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import Session

from steerboard.datasets.rows.row_writer import copy_in
from steerboard.evaluation.events import changed
from steerboard.evaluation.lookup import part_of_run
from steerboard.evaluation.tables import Entrant, Evaluation, EvaluationPrompt, Response
from steerboard.runs.tables import Run
from steerboard_contracts.errors import BadInput
from steerboard_files.texts import storable

# What is kept of an answer, in addition to whose it is.
_KEPT = ("position", "sample", "turns", "tokens", "finished", "log_ratio", "log_prob", "log_prob_tokens")
_ASKED = ("prompts", "prompt_tokens", "seconds")
_COLUMNS = (*_KEPT, *_ASKED)
_COPY = f"COPY evaluation_responses (entrant_id, {', '.join(_COLUMNS)}) FROM STDIN"


def entrants_of(session: Session, evaluation: Evaluation) -> Sequence[Entrant]:
    """The entrants in their order."""
    return session.scalars(
        select(Entrant).where(Entrant.evaluation_id == evaluation.id).order_by(Entrant.position, Entrant.id)
    ).all()


def store_file(session: Session, run: Run, path: Path) -> int:
    """Store the responses that an answer run made, in the transaction that ends it. Returns how many.

    `path`: jsonl of `{position, sample, turns, tokens, finished}`, perhaps with `log_ratio`, `log_prob`,
    `log_prob_tokens`, `prompts`, `prompt_tokens` and `seconds`. Raises `BadInput` (`row_count_differs`) unless there is
    each prompt with each sample.
    """
    return store(session, run, _lines(path))


def store(session: Session, run: Run, rows: Iterator[dict[str, Any]]) -> int:
    """`store_file` for rows."""
    evaluation, entrant = part_of_run(session, run, Entrant, "entrant")
    prompts = session.scalar(
        select(func.count()).select_from(EvaluationPrompt).where(EvaluationPrompt.evaluation_id == evaluation.id)
    )
    session.execute(delete(Response).where(Response.entrant_id == entrant.id))
    seen: set[tuple[int, int]] = set()
    with copy_in(session, _COPY) as copy:
        for row in rows:
            place = int(row["position"]), int(row["sample"])
            seen.add(place)
            turns = [storable(turn) for turn in row["turns"]]
            lists = _json(turns), _json(row["tokens"]), _json(row["finished"])
            log_probs = row.get("log_ratio"), row.get("log_prob"), row.get("log_prob_tokens")
            if row.get("prompts") is not None:
                row["prompts"] = [storable(prompt) for prompt in row["prompts"]]
            asked = [_json(row[name]) if row.get(name) is not None else None for name in _ASKED]
            copy.write_row((entrant.id, *place, *lists, *log_probs, *asked))
    wanted = (prompts or 0) * entrant.samples
    if len(seen) != wanted:
        raise BadInput(f"{wanted} responses were asked for, but {len(seen)} were made", code="row_count_differs")
    changed(session, evaluation, "answers")
    return wanted


def copy_from_equal_run(session: Session, source: Run, run: Run) -> bool:
    """Give `run` the responses of an equal finished one. False when they are not there any more."""
    evaluation, entrant = part_of_run(session, run, Entrant, "entrant")
    from_ = uuid.UUID(source.config["entrant"])
    if session.scalar(select(Response.position).where(Response.entrant_id == from_).limit(1)) is None:
        return False
    columns = [getattr(Response, name) for name in _COLUMNS]
    rows = select(literal(entrant.id, postgresql.UUID(as_uuid=True)), *columns).where(Response.entrant_id == from_)
    into = ["entrant_id", *_COLUMNS]
    session.execute(postgresql.insert(Response).from_select(into, rows).on_conflict_do_nothing())
    changed(session, evaluation, "answers")
    return True


def turns_before_last(messages: list[dict[str, str]], follow_ups: list[str], turns: list[str]) -> list[dict[str, str]]:
    """Everything before a response's last turn, as the prompt of that turn. `turns` has at least one."""
    prompt = list(messages)
    for answer, question in zip(turns[:-1], follow_ups, strict=False):
        prompt.append({"role": "assistant", "content": answer})
        prompt.append({"role": "user", "content": question})
    return prompt


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for line in file:
            yield json.loads(line)  # a lone surrogate is legal JSON, whatever orjson thinks


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
