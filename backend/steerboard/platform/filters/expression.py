"""The parts of a filter, before its fields are known. `at` is the place of a part in its text, from 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Operator = Literal["=", "!=", "<", "<=", ">", ">=", ":", "~"]


@dataclass(frozen=True)
class Word:
    """A part of the text as it was meant: without quotes. `length` is that in the text. `quoted`: it is no name of a
    constant or a list."""

    text: str
    at: int
    length: int
    quoted: bool = False


@dataclass(frozen=True)
class Comparison:
    """`eval_loss < 1.2`, `tag:good`, `state:failed,cancelled`, which has two values."""

    field: Word
    operator: Operator
    values: tuple[Word, ...]


@dataclass(frozen=True)
class Search:
    """A word or a quoted text without a field."""

    word: Word


@dataclass(frozen=True)
class Negation:
    of: Expression


@dataclass(frozen=True)
class Conjunction:
    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Disjunction:
    parts: tuple[Expression, ...]


Expression = Comparison | Search | Negation | Conjunction | Disjunction
