"""What a run takes in: named places for models of certain roles and datasets of certain kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Thing = Literal["model", "dataset"]

TEXTS = frozenset({"instructions", "preferences", "prompts", "labelled", "unpaired", "stepwise"})
"""Kinds of datasets that have prompts."""


@dataclass(frozen=True)
class Slot:
    """A named input: a model of one of these roles, or a dataset of one of these kinds.

    `many`: a list of references (`parts.0`, `parts.1`, ...); `required` may be met by the planner, see implied.py.
    `or_field`: the field of the config in which the rows can be written out instead; one of both is needed.
    """

    thing: Thing
    allowed: frozenset[str]
    many: bool = False
    required: bool = True
    or_field: str | None = None


def models(*roles: str, many: bool = False, required: bool = True) -> Slot:
    return Slot("model", frozenset(roles), many, required)


def datasets(*kinds: str, many: bool = False, required: bool = True, or_field: str | None = None) -> Slot:
    return Slot("dataset", frozenset(kinds), many, required, or_field)
