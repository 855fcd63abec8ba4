"""A condition: the attributes with their values that a policy is asked for, such as a reward of 5.

Written `helpfulness:4,verbosity:2`. The paper's score is the simplest one, the single attribute `rm_score`, and is
written and stored as a plain number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ConfigDict, GetJsonSchemaHandler, RootModel, model_serializer, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from steerboard_contracts.attribute_names import MOST_ATTRIBUTES, NAME_PATTERN, SCORE, AttributeName
from steerboard_contracts.samples import Finite

_EXPECTED = "must be a number, a text such as helpfulness:4,verbosity:2, or a mapping"
_MATCHES = re.compile(NAME_PATTERN)


class Condition(RootModel[tuple[tuple[AttributeName, Finite], ...]]):
    """Attributes with their values, in their order; those that are not asked for are absent.

    Reads a number (the score), a text such as `helpfulness:4,verbosity:2`, or a mapping. The empty text asks for
    nothing at all, which is not the same as asking for a policy's default.
    """

    model_config = ConfigDict(frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _parse(cls, given: Any) -> Any:
        pairs = list(_pairs(given))
        if len(pairs) > MOST_ATTRIBUTES:
            raise ValueError(f"asks for more than {MOST_ATTRIBUTES} attributes")
        names = [name for name, _ in pairs]
        for name in names:
            if not isinstance(name, str) or not _MATCHES.fullmatch(name):
                raise ValueError(f"{name!r} is not a valid attribute name: use letters, digits, `_`, `.` and `-`")
            if names.count(name) > 1:
                raise ValueError(f"{name} is requested twice")
        return tuple((name, _number(name, value)) for name, value in pairs)

    @model_serializer
    def plain(self) -> float | str:
        """The condition as JSON has it: the score as a number, any other condition as its text."""
        return self.text if self.score is None else self.score

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        # One schema for both directions; mappings are read as well.
        return {"title": "Condition", "anyOf": [{"type": "number"}, {"type": "string", "maxLength": 4096}]}

    @classmethod
    def of(cls, values: Mapping[str, float] | Iterable[tuple[str, float]]) -> Condition:
        """Raises `ValidationError`."""
        return cls.model_validate(dict(values))

    @property
    def values(self) -> dict[str, float]:
        return dict(self.root)

    @property
    def score(self) -> float | None:
        """The paper's score, where that is all that is asked for."""
        return self.root[0][1] if len(self.root) == 1 and self.root[0][0] == SCORE else None

    @property
    def text(self) -> str:
        """`helpfulness:4,verbosity:2`, or `5` for a score; reads back as this condition."""
        if self.score is not None:
            return _shortest(self.score)
        return ",".join(f"{name}:{_shortest(value)}" for name, value in self.root)

    @property
    def slug(self) -> str:
        """A part of names: `5`, `helpfulness4_verbosity2`, `nothing`."""
        if self.score is not None:
            return f"{self.score:g}"
        return "_".join(f"{name}{value:g}" for name, value in self.root) or "nothing"

    def __str__(self) -> str:
        return self.text

    def __format__(self, spec: str) -> str:
        """A score as the number that it is, any other condition as its text."""
        return self.text if self.score is None else format(self.score, spec)


def varied(conditions: Iterable[Condition]) -> list[float] | None:
    """The values of the one attribute in which conditions differ, for curves. None where they differ in none, in
    several, or in what they ask for."""
    values = [condition.values for condition in conditions]
    if not values or any(condition.keys() != values[0].keys() for condition in values):
        return None
    different = [name for name in values[0] if len({condition[name] for condition in values}) > 1]
    return [condition[different[0]] for condition in values] if len(different) == 1 else None


def _pairs(given: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(given, Condition):
        return given.root
    if isinstance(given, Mapping):
        return given.items()
    if isinstance(given, int | float) and not isinstance(given, bool):
        return [(SCORE, given)]
    if not isinstance(given, str):
        raise ValueError(_EXPECTED)
    if len(given) > 4096:
        raise ValueError("is longer than 4096 characters")
    parts = [part.strip() for part in given.split(",")] if given.strip() else []
    if len(parts) == 1 and ":" not in parts[0]:
        try:
            return [(SCORE, float(parts[0]))]
        except ValueError:
            raise ValueError(_EXPECTED) from None
    return [(name.strip(), value) for name, _, value in (part.partition(":") for part in parts)]


def _number(name: str, value: Any) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name}: {value!r} is not a number") from None
    if not math.isfinite(number):
        raise ValueError(f"{name}: is not a finite number")
    return number + 0.0  # no negative zero, which JSONB does not know


def _shortest(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
