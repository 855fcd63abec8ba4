"""Layouts that are recognised but not read, each with what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from steerboard.datasets.parsing.unused_columns import answer_columns, looks_like_answers

Rows = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Unread:
    """`words`: what the file looks like, and the command or the change that fits."""

    fits: Callable[[frozenset[str], Rows], bool]
    words: str


def _several_answers(columns: frozenset[str], rows: Rows) -> bool:
    lists = (name for name in columns if looks_like_answers(name))
    return any(isinstance(value, list) and len(value) > 1 for name in lists for row in rows if (value := row.get(name)))


def _two_answers(columns: frozenset[str], _: Rows) -> bool:
    # Columns called A and B may be the choices of a question.
    return answer_columns([name for name in columns if looks_like_answers(name)]) is not None


def _only_sides(columns: frozenset[str], rows: Rows) -> bool:
    texts = all(isinstance(row.get(side), str) for row in rows for side in ("chosen", "rejected"))
    return {"chosen", "rejected"} <= columns and "prompt" not in columns and texts


UNREAD = (
    Unread(
        _several_answers,
        "These look like several answers to each prompt. Add a list `scores` with a grade of each, or write one row an "
        "answer with prompt, response and reward. For the prompts alone: --kind prompts.",
    ),
    Unread(
        _only_sides,
        "These look like two texts that begin with their prompt (TRL's implicit form), and where it ends is unknown. "
        "Write the prompt to a column `prompt` as well, and it is taken from both sides; or write both as "
        "lists of messages.",
    ),
    Unread(
        lambda columns, _: "message_tree_id" in columns or {"message_id", "parent_id"} <= columns,
        "These look like OpenAssistant's messages without ranks of a prompt's replies below it. Write each path from a "
        "prompt to an answer as one list of messages, `messages`; or the best and the worst answer to a prompt as "
        "`chosen` and `rejected`.",
    ),
    Unread(
        lambda columns, _: "choices" in columns and "question_id" in columns,
        "These look like answers to a benchmark. Import them into an evaluation: steerboard evaluations "
        "import-answers.",
    ),
    Unread(
        lambda columns, _: "pandalm_result" in columns,
        "These look like PandaLM's verdicts without the answers that they are about. To measure that judge: steerboard "
        "figures TESTSET THIS_FILE --format pandalm.",
    ),
    Unread(
        _two_answers,
        "These look like two answers to each prompt without a verdict. Add a column `winner` with "
        "a, b or tie. To have them judged, write the answers of each side as AlpacaEval does (`instruction`, `output`, "
        "`generator`): steerboard evaluations import-answers EVALUATION FILE. For the prompts alone: --kind prompts.",
    ),
    Unread(
        lambda columns, _: "text" in columns,
        "A text without a prompt cannot be learned from. Split it into `prompt` and `response`; or, for prompts alone: "
        "--kind prompts --map prompt=text.",
    ),
)


def unread_layout(columns: Sequence[str], rows: Rows) -> str | None:
    """What a file looks like that has no kind of ours, and what to do about it."""
    named = frozenset(columns)
    return next((layout.words for layout in UNREAD if layout.fits(named, rows)), None)
