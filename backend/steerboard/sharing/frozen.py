"""A page as it was when its link was made, which the database keeps as JSON. All texts are plain, and hostile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from steerboard.sharing.blocks import Grid


@dataclass(frozen=True)
class Passage:
    """A text with its line breaks. `note`: a smaller line between its title and it."""

    title: str
    text: str
    note: str = ""


@dataclass(frozen=True)
class Line:
    """`points`: (step, value), in the order of the steps. `place`: of its colour, the same in every chart."""

    label: str
    place: int
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Chart:
    """Lines over the steps of training."""

    title: str
    lines: tuple[Line, ...]


# No block has all required fields of another, so that JSON can be read as one of them only.
FrozenBlock = Grid | Passage | Chart


@dataclass(frozen=True)
class FrozenPage:
    """`about`: what it is, and from when."""

    title: str
    about: str
    blocks: tuple[FrozenBlock, ...]


_PAGE: TypeAdapter[FrozenPage] = TypeAdapter(FrozenPage)


def to_json(page: FrozenPage) -> dict[str, Any]:
    """The page as `from_json` reads it."""
    made: dict[str, Any] = _PAGE.dump_python(page, mode="json")
    return made


def from_json(page: dict[str, Any]) -> FrozenPage:
    return _PAGE.validate_python(page)
