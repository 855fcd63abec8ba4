"""Two answers to a prompt under other names: those of OpenAI, TRL and LLMBar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from steerboard.datasets.parsing.layouts.layout import Convert, Layout, Row, without
from steerboard_files.records import Problem

_OPENAI = ("input", "preferred_output", "non_preferred_output")
_OUTPUTS = ("output_1", "output_2")
_LLMBAR = ("input", *_OUTPUTS, "label")
# A file with one of these means something else by its outputs.
_OTHERS = ("prompt", "instruction", "chosen", "rejected")
_TEXTS = ("prompt", "chosen", "rejected")


def _openai(rows: Sequence[Row]) -> Convert | None:
    return _from_openai if any(all(name in row for name in _OPENAI) for row in rows) else None


def _from_openai(_: int, row: Row) -> Iterator[Row | Problem]:
    given = row.get("input")
    if not isinstance(given, dict) or not all(name in row for name in _OPENAI):
        yield Problem("bad_row", "has no `input`, `preferred_output` and `non_preferred_output`, unlike other rows")
    else:
        tools = {"tools": given["tools"]} if given.get("tools") else {}
        sides = {"chosen": row["preferred_output"], "rejected": row["non_preferred_output"]}
        yield {"prompt": given.get("messages"), **tools, **sides, **without(row, *_OPENAI)}


def _repeated(rows: Sequence[Row]) -> Convert | None:
    """Sides that both begin with the prompt as text."""
    texts = [[row.get(name) for name in _TEXTS] for row in rows]
    return _without_prompt if texts and all(map(_begin_alike, texts)) else None


def _begin_alike(texts: list[Any]) -> bool:
    if not all(isinstance(text, str) for text in texts):
        return False
    prompt, *sides = (text.lstrip() for text in texts)
    return bool(prompt.strip()) and all(side.startswith(prompt) and side != prompt for side in sides)


def _without_prompt(_: int, row: Row) -> Iterator[Row | Problem]:
    texts = [row.get(name) for name in _TEXTS]
    if not _begin_alike(texts):
        yield Problem("bad_row", "chosen and rejected do not begin with the prompt, unlike the rows before it")
        return
    length = len(str(row["prompt"]).lstrip())
    yield {**row, **{side: row[side].lstrip()[length:].lstrip() for side in ("chosen", "rejected")}}


def _llmbar(rows: Sequence[Row]) -> Convert | None:
    return _from_llmbar if any(map(_is_llmbar, rows)) else None


def _is_llmbar(row: Row) -> bool:
    return all(name in row for name in _LLMBAR) and not any(name in row for name in _OTHERS)


def _from_llmbar(_: int, row: Row) -> Iterator[Row | Problem]:
    if not _is_llmbar(row):
        yield row
        return
    better = str(row["label"]).strip()
    if better not in ("1", "2"):
        yield Problem("bad_row", f"has {better[:80]!r} in `label`, which is neither 1 nor 2")
        return
    chosen, rejected = _OUTPUTS if better == "1" else _OUTPUTS[::-1]
    yield {"prompt": row["input"], "chosen": row[chosen], "rejected": row[rejected], **without(row, *_LLMBAR)}


PAIRS = (
    Layout("OpenAI preferences", "OpenAI's input, preferred_output and non_preferred_output", _openai),
    Layout("prompt in both sides", "chosen and rejected texts that begin with the prompt", _repeated),
    Layout("LLMBar", "LLMBar's input, output_1, output_2 and label", _llmbar),
)
