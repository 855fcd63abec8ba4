"""Pydantic's complaints in words for people, with the nearest name for a misspelled one."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from steerboard_contracts.errors import ErrorLocation

Place = tuple[int | str, ...]

# Names are shorter; to compare long texts takes seconds.
_MAX_WORD = 100


@dataclass(frozen=True)
class Complaint:
    """`place`: the keys and indices that lead to what is wrong. Of a `missing` field, to the mapping that needs it."""

    place: Place
    message: str
    missing: str | None = None


def complaints(
    error: ValidationError,
    given: Any,
    model: type[BaseModel],
    more: Iterable[str] = (),
    check: Callable[[], None] = lambda: None,
) -> list[Complaint]:
    """One for each place in `given`, as a `model`. `more`: keys that it may have besides the fields. `check` is called
    for every problem: of a hostile text there may be many."""
    grouped: dict[tuple[Place, str | None], list[str]] = {}
    got: dict[Place, str] = {}
    for problem in error.errors(include_url=False, include_context=False):
        check()
        loc = problem["loc"]
        place, missing = _existing(given, loc), None
        if problem["type"] == "missing":
            missing = str(loc[-1])
            message = f"needs `{missing}`"
        elif problem["type"] == "extra_forbidden":
            known = [*_fields(model, loc[:-1]), *(more if len(loc) == 1 else ())]
            message = f"unknown key `{loc[-1]}`" + did_you_mean(str(loc[-1]), known)
        else:
            message = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
            got[place] = _shown(problem["input"])
        messages = grouped.setdefault((place, missing), [])
        if message not in messages:
            messages.append(message)
    return [
        Complaint(place, " or ".join(messages) + (f", got {got[place]}" if got.get(place) else ""), missing)
        for (place, missing), messages in grouped.items()
    ]


def locations(problems: Iterable[ErrorDetails], *above: str) -> list[ErrorLocation]:
    """Pydantic's own words for each place, which is below `above`."""
    return [
        ErrorLocation(
            location=".".join([*above, *map(str, problem["loc"])]), message=problem["msg"].removeprefix("Value error, ")
        )
        for problem in problems
    ]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean "lr"?`, or the list of what there is when nothing is close and the list is short."""
    names = sorted({name for name in known if len(name) <= _MAX_WORD})
    close = difflib.get_close_matches(word, names, n=3, cutoff=0.6) if len(word) <= _MAX_WORD else []
    if close:
        return f"; did you mean `{max(close, key=lambda name: _likeness(name, word))}`?"
    if 0 < len(names) <= 12:
        return f"; known: {', '.join(names)}"
    return ""


def _likeness(name: str, word: str) -> tuple[float, int]:
    """How like a word a name is; of two equally like ones, the nearest begins as the word does."""
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(name, word, strict=False))
    return difflib.SequenceMatcher(None, name, word).ratio(), len(list(alike))


def _existing(value: Any, loc: Place) -> Place:
    """What of pydantic's location is in the value: unions add the names of their branches."""
    place: Place = ()
    for part in loc:
        is_item = isinstance(value, list) and isinstance(part, int) and part < len(value)
        if is_item or (isinstance(value, dict) and part in value):
            value = value[part]
            place = (*place, part)
    return place


def _fields(model: type[BaseModel], loc: Place) -> list[str]:
    """The fields that a mapping at `loc` may have."""
    models = [model]
    for part in loc:
        inner = [
            model.model_fields[part].annotation
            for model in models
            if isinstance(part, str) and part in model.model_fields
        ]
        models = [model for annotation in inner for model in _models(annotation)] or models
    return [name for model in models for name in model.model_fields]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _shown(value: Any) -> str:
    """The wrong value, unless it is too long to help."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    shown = repr(value)
    if len(shown) <= 60:
        return shown
    return "" if isinstance(value, dict | list) else shown[:57] + "..."
