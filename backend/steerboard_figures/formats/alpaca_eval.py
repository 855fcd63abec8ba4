"""AlpacaEval's prompts, outputs and annotations. None of them has ids: the instruction itself identifies them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from steerboard_figures.formats.records import (
    Answer,
    Judgment,
    Question,
    Unreadable,
    named,
    named_judge,
    number,
    optional_text,
    status_of,
    text,
    user,
)
from steerboard_files.texts import storable
from steerboard_statistics.benchmarks.alpaca_eval import probability


def question(row: Mapping[str, Any]) -> Question:
    """{instruction, input?, dataset}: its place in the file is its id, from 0, for difficulties belong to places."""
    category = optional_text(row, "dataset")
    return Question(None, category, [user(instruction_of(row))], [], None)


def answers(row: Mapping[str, Any]) -> list[Answer]:
    """{instruction, output, generator}."""
    return [Answer(named(row, "generator"), None, instruction_of(row), 0, [text(row, "output")])]


def annotation(row: Mapping[str, Any]) -> list[Judgment]:
    """{instruction, output_1, generator_1, output_2, generator_2, annotator, preference}.

    generator_1 is the baseline, generator_2 the model; preference - 1 is the probability that the model's output is
    better, 0 a draw, null none.
    """
    if "preference" not in row:
        raise Unreadable("has no `preference`")
    preference = number(row, "preference")
    try:
        value = probability(preference) if status_of(row, "ok") == "ok" else None
    except ValueError as error:
        raise Unreadable(f"has {preference:g} in `preference`: {error}") from error
    model, baseline = named(row, "generator_2"), named(row, "generator_1")
    if model == baseline:
        raise Unreadable("compares a model with itself")
    completion = row.get("raw_completion")
    if completion is not None and not isinstance(completion, str):
        completion = orjson.dumps(completion).decode()
    return [
        Judgment(
            model=model,
            other=baseline,
            question_id=None,
            prompt=instruction_of(row),
            turn=1,
            value=value,
            status="ok" if value is not None else status_of(row, "unparsed"),
            raw=storable(completion) if completion is not None else None,
            judge=annotator_of(row),
            outputs=(optional_text(row, "output_2"), optional_text(row, "output_1")),
        )
    ]


def annotator_of(row: Mapping[str, Any]) -> str | None:
    """`annotator`, or `judge` as other tools call it, in whose list the model comes first. Raises `Unreadable`."""
    return named_judge(row, "annotator", "judge")


def answer_row(instruction: str, model: str, output: str, dataset: str | None) -> dict[str, Any]:
    row = {"instruction": instruction, "output": output, "generator": model}
    return row if dataset is None else {**row, "dataset": dataset}


def annotation_row(
    instruction: str,
    dataset: str | None,
    baseline: tuple[str, str | None],
    model: tuple[str, str | None],
    judge: str,
    verdict: Mapping[str, Any],
) -> dict[str, Any]:
    """`baseline` and `model`: name and output. `verdict`: value (of the model), status, raw."""
    row: dict[str, Any] = {
        "instruction": instruction,
        "output_1": baseline[1],
        "generator_1": baseline[0],
        "dataset": dataset,
        "output_2": model[1],
        "generator_2": model[0],
        "annotator": judge,
        "preference": verdict["value"] + 1 if verdict["value"] is not None else None,
        "raw_completion": verdict["raw"],
    }
    return row if verdict["status"] == "ok" else {**row, "status": verdict["status"]}


def instruction_of(row: Mapping[str, Any]) -> str:
    """The instruction with the `input` below it that rows of Alpaca's own kind have, empty or not."""
    instruction, more = text(row, "instruction"), optional_text(row, "input")
    return f"{instruction}\n\n{more}" if more and more.strip() else instruction
