"""Which format a file has, by the fields of its first row that is an object."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from steerboard_figures.formats import alpaca_eval, arena_hard, fastchat, plain, vicuna
from steerboard_figures.formats.records import Answer, Judgment, Question, Unreadable
from steerboard_figures.formats.rows import read_rows
from steerboard_files.errors import WrongFileType
from steerboard_files.records import Problem, Source

Kind = Literal["questions", "answers", "judgments"]
QuestionFormat = Literal["fastchat", "alpaca_eval", "arena_hard", "jsonl"]
AnswerFormat = Literal["fastchat", "alpaca_eval", "arena_hard"]
JudgmentFormat = Literal[
    "fastchat_single", "fastchat_pair", "alpaca_eval", "arena_hard", "arena_bench", "vicuna_review"
]

QUESTIONS: dict[str, Callable[[Mapping[str, Any]], Question]] = {
    "fastchat": fastchat.question,
    "alpaca_eval": alpaca_eval.question,
    "arena_hard": arena_hard.question,
    "jsonl": plain.question,
}
ANSWERS: dict[str, Callable[[Mapping[str, Any]], list[Answer]]] = {
    "fastchat": fastchat.answers,
    "alpaca_eval": alpaca_eval.answers,
    "arena_hard": arena_hard.answers,
}
JUDGMENTS: dict[str, Callable[[Mapping[str, Any]], list[Judgment]]] = {
    "fastchat_single": fastchat.single,
    "fastchat_pair": fastchat.pair,
    "alpaca_eval": alpaca_eval.annotation,
    "arena_hard": arena_hard.judgment,
    "arena_bench": fastchat.single,
    "vicuna_review": vicuna.review,
}


def detect(source: Source) -> tuple[Kind, str]:
    """What a file holds and in which format. Raises `WrongFileType` where no format has such fields."""
    row = _first_object(source)
    kind_and_format = _judgments(row) or _answers(row) or _questions(row)
    if kind_and_format is None:
        fields = ", ".join(sorted(row)[:12])
        raise WrongFileType(
            f"{source.label} has the fields {fields}, which match no known format",
            hint="Name its `format`, or see docs/evaluation.md for the fields that each has.",
        )
    return kind_and_format


def expect(source: Source, kind: Kind, format: str) -> str:
    """The format to read a file as: what was asked for, or for `auto` what it looks like, which must be of `kind`."""
    if format != "auto":
        return format
    is_, detected = detect(source)
    if is_ != kind:
        raise WrongFileType(f"{source.label} holds {is_} ({detected}), not {kind}", hint=f"Import it as {is_}.")
    return detected


Row = tuple[int, list[Any] | Problem]


def read(source: Source, parse: Callable[[Mapping[str, Any]], Any]) -> Iterator[Row]:
    """(line, what `parse` makes of it, as a list, or what is wrong with it)."""
    for line, row in read_rows(source):
        if isinstance(row, Problem):
            yield line, row
            continue
        try:
            parsed = parse(row)
        except Unreadable as error:
            yield line, Problem("bad_row", str(error))
        else:
            yield line, parsed if isinstance(parsed, list) else [parsed]


def _first_object(source: Source) -> Mapping[str, Any]:
    first = ""
    for line, row in read_rows(source):
        if not isinstance(row, Problem):
            return row
        first = first or f": line {line} {row.reason}"
    raise WrongFileType(f"{source.label} has no row that can be read{first}")


def _judgments(row: Mapping[str, Any]) -> tuple[Kind, str] | None:
    if "g1_winner" in row:
        return "judgments", "fastchat_pair"
    if "games" in row:
        return "judgments", "arena_hard"
    if "preference" in row and "generator_2" in row:
        return "judgments", "alpaca_eval"
    if "answer1_id" in row:
        return "judgments", "vicuna_review"
    if "score" in row and "model" in row:
        return "judgments", "fastchat_single" if "judge" in row or "turn" in row else "arena_bench"
    return None


def _answers(row: Mapping[str, Any]) -> tuple[Kind, str] | None:
    if "choices" in row:
        choices = row["choices"] if isinstance(row["choices"], list) else []
        turns = next((choice.get("turns") for choice in choices if isinstance(choice, dict)), None)
        nested = isinstance(turns, list) and bool(turns) and isinstance(turns[0], dict)
        return "answers", "arena_hard" if nested else "fastchat"
    if "messages" in row and "model" in row:
        return "answers", "arena_hard"
    if "text" in row and "model_id" in row:
        return "answers", "fastchat"
    if "output" in row and "generator" in row and "instruction" in row:
        return "answers", "alpaca_eval"
    return None


def _questions(row: Mapping[str, Any]) -> tuple[Kind, str] | None:
    if "turns" in row:
        nested = isinstance(row["turns"], list) and any(isinstance(turn, dict) for turn in row["turns"])
        return "questions", "arena_hard" if nested else "fastchat"
    if isinstance(row.get("prompt"), list) and all(isinstance(turn, str) for turn in row["prompt"]):
        return "questions", "fastchat"
    if "text" in row and "question_id" in row:
        return "questions", "fastchat"
    if "uid" in row and "prompt" in row:
        return "questions", "arena_hard"
    if "instruction" in row:
        return "questions", "alpaca_eval"
    if "prompt" in row or "messages" in row:
        return "questions", "jsonl"
    return None
