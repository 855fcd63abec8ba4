"""What a preference model compares as a judge of an evaluation, and its verdicts."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from steerboard.datasets.rows.exporting import renamed_at_end
from steerboard.datasets.rows.row_writer import copy_in
from steerboard.evaluation.events import changed
from steerboard.evaluation.judge_tables import Judge, Verdict
from steerboard.evaluation.judges.judge_inputs import JudgedPrompt, JudgeInputs, written_out
from steerboard.evaluation.judges.queries import judge_inputs_of
from steerboard.evaluation.judges.schemas import JudgeSettings
from steerboard.evaluation.lookup import part_of_run
from steerboard.runs.tables import Run
from steerboard_contracts.stage.inputs import ComparisonsInput

STYLE = "preference"
Item = tuple[int, int, uuid.UUID, uuid.UUID]
"""Position, turn, and two entrants."""

_INCOMING = """
    CREATE TEMP TABLE incoming_verdicts
    (position int, turn int, a uuid, b uuid, forth float8, back float8, detail text) ON COMMIT DROP
"""
_REPLACE = """
    DELETE FROM evaluation_verdicts v USING incoming_verdicts i
    WHERE v.judge_id = :judge AND (v.position, v.turn, v.a, v.b) = (i.position, i.turn, i.a, i.b)
"""
_STORE = """
    INSERT INTO evaluation_verdicts
        (judge_id, position, turn, a, b, a_first, value, weight, status, detail, superseded)
    SELECT :judge, i.position, i.turn, i.a, i.b, orders.a_first,
        CASE WHEN orders.a_first THEN i.forth ELSE i.back END, 1,
        CASE WHEN i.detail IS NULL THEN 'ok' ELSE 'error' END, i.detail, false
    FROM incoming_verdicts i
    JOIN evaluation_entrants a ON a.id = i.a AND a.evaluation_id = :evaluation
    JOIN evaluation_entrants b ON b.id = i.b AND b.evaluation_id = :evaluation
    CROSS JOIN (VALUES (true), (false)) AS orders (a_first)
"""


@dataclass(frozen=True)
class AnswerPair:
    """Two answers to one prompt. `prompt`: the conversation before them."""

    item: Item
    prompt: list[dict[str, str]]
    responses: tuple[str, str]


def pairs(inputs: JudgeInputs, settings: JudgeSettings) -> Iterator[AnswerPair]:
    """Every pair of entrants, or every other one against the baseline: at each turn that both have answered."""
    for prompt in inputs.prompts:
        for turn in range(1, prompt.turns + 1):
            for (first, ones), (other, others) in inputs.pairs(prompt, turn, settings.baseline):
                yield AnswerPair((prompt.position, turn, first.id, other.id), *_shown(prompt, turn, ones, others))


def _shown(
    prompt: JudgedPrompt, turn: int, ones: list[str], others: list[str]
) -> tuple[list[dict[str, str]], tuple[str, str]]:
    """Earlier turns that differ belong to the answers."""
    conversation = [dict(message) for message in prompt.messages]
    if ones[:-1] == others[:-1]:
        for answer, question in zip(ones[:-1], prompt.follow_ups, strict=False):
            conversation += [{"role": "assistant", "content": answer}, {"role": "user", "content": question}]
        return conversation, (ones[-1], others[-1])
    questions = prompt.questions(turn)
    last = [{"role": "user", "content": questions[-1]}]
    return last, (written_out(questions, ones), written_out(questions, others))


def compared(session: Session, judge: Judge) -> set[Item]:
    """Pairs with verdicts in both orders; one that could not be compared has none."""
    rows = session.execute(
        select(Verdict.position, Verdict.turn, Verdict.a, Verdict.b)
        .where(Verdict.judge_id == judge.id, Verdict.status == "ok", ~Verdict.superseded)
        .group_by(Verdict.position, Verdict.turn, Verdict.a, Verdict.b)
        .having(func.count() == 2)
    )
    return {(position, turn, a, b) for position, turn, a, b in rows if b is not None}


def write_input(session: Session, run: Run, path: Path) -> ComparisonsInput:
    """The pairs that the judge of a compare run has not compared yet. Raises `UnusableInput`."""
    evaluation, judge = part_of_run(session, run, Judge, "judge")
    settings = JudgeSettings.model_validate(judge.settings)
    done, count = compared(session, judge), 0
    with renamed_at_end(path) as file:
        for pair in pairs(judge_inputs_of(session, evaluation, settings), settings):
            if pair.item in done:
                continue
            position, turn, a, b = pair.item
            row = {"position": position, "turn": turn, "a": str(a), "b": str(b)}
            shown: dict[str, Any] = {"prompt": pair.prompt, "responses": pair.responses}
            file.write(orjson.dumps(row | shown, option=orjson.OPT_APPEND_NEWLINE))
            count += 1
    return ComparisonsInput(name=evaluation.name, path=str(path), comparisons=count)


def store_file(session: Session, run: Run, path: Path) -> int:
    """Store what a compare run found, in the transaction that ends it; the number of pairs. Raises `UnusableInput`."""
    evaluation, judge = part_of_run(session, run, Judge, "judge")
    count = 0
    session.execute(text(_INCOMING))
    with path.open("rb") as file, copy_in(session, "COPY incoming_verdicts FROM STDIN") as copy:
        for line in file:
            row = orjson.loads(line)
            columns = row.get("forth"), row.get("back"), row.get("detail")
            copy.write_row((row["position"], row["turn"], row["a"], row["b"], *columns))
            count += 1
    session.execute(text(_REPLACE), {"judge": judge.id})
    session.execute(text(_STORE), {"judge": judge.id, "evaluation": evaluation.id})
    session.execute(text("DROP TABLE incoming_verdicts"))
    changed(session, evaluation, "judge")
    return count
