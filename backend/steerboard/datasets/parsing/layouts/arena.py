"""Two answers to a prompt with a verdict on them, and the preference that they become."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from steerboard.datasets.parsing.arranged import Removed
from steerboard.datasets.parsing.layouts.layout import Row
from steerboard.datasets.parsing.mapping import ALIASES
from steerboard_files.records import Problem

Verdict = Literal["a", "b", "tie"]

# A prompt under these names is found only where two answers to it are.
_PROMPTS = (*ALIASES["prompt"], *ALIASES["messages"], "input", "context", "history")


@dataclass(frozen=True)
class Arena:
    """`verdict`: which answer of a row is the better one, None where that cannot be read. `judged`: its columns.
    `strength`: how much better it is, where a file has that. `otherwise`: what is wrong with other values."""

    a: str
    b: str
    judged: tuple[str, ...]
    verdict: Callable[[Row], Verdict | None]
    strength: Callable[[Row], float | None] | None = None
    otherwise: str = ""

    @property
    def fault(self) -> str:
        return self.otherwise or f"is neither {self.a} nor {self.b} nor a tie"


def preferences(row: Row, arena: Arena) -> Iterator[Row | Problem | Removed]:
    """The preference of a row, unless it is a tie."""
    verdict = arena.verdict(row)
    if verdict is None:
        given = ", ".join(f"{name} = {str(row.get(name))[:40]}" for name in arena.judged)
        yield Problem("bad_row", f"{given}: {arena.fault}")
    elif verdict == "tie":
        yield Removed("tie")
    else:
        better, worse = (arena.a, arena.b) if verdict == "a" else (arena.b, arena.a)
        pair = _as_pair(row, arena, better, worse)
        strength = arena.strength(row) if arena.strength else None
        if strength is not None:
            pair.setdefault("margin", strength)
        # Lists of several texts are the turns of one side each, of which the later ones answer different dialogues.
        yield Removed("diverging") if _are_texts(pair["chosen"]) and _are_texts(pair["rejected"]) else pair


def _as_pair(row: Row, arena: Arena, better: str, worse: str) -> Row:
    """What the columns tell of each answer is called by its side: `model_a` of the better one `model_chosen`."""
    pair = {"chosen": _lone_text(row.get(better)), "rejected": _lone_text(row.get(worse))}
    ends = {better[-1]: "chosen", worse[-1]: "rejected"}
    other = {better[-1]: worse[-1], worse[-1]: better[-1]}
    for name, value in row.items():
        if name in (better, worse, *arena.judged):
            continue
        partner = name[:-1] + other.get(name[-1:], "")
        side = ends.get(name[-1:]) if name[-2:-1] == "_" and partner in row and partner != name else None
        pair[f"{name[:-1]}{side}" if side else name] = value
    column = next((name for name in _PROMPTS if name in pair), None)
    if column is not None:
        value = _lone_text(pair.pop(column))
        known = column in (*ALIASES["prompt"], *ALIASES["messages"])
        pair[column if known else "prompt"] = value
    return pair


def _lone_text(value: Any) -> Any:
    """A list of one text, which some exports write as JSON; and the text of a question of WebGPT's."""
    if isinstance(value, str) and value.startswith('["') and value.endswith('"]'):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    if isinstance(value, dict) and isinstance(value.get("full_text"), str):
        return value["full_text"]
    return value[0] if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str) else value


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(isinstance(text, str) for text in value)
