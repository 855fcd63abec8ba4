"""A report as a document of few kinds of blocks, which become HTML or PDF. All texts are plain, and hostile."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Text:
    """A paragraph; `small` is of less weight."""

    text: str
    small: bool = False


@dataclass(frozen=True)
class Items:
    """A list under a title."""

    title: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """`detail`: a second, smaller line. `shade`: a share from 0 to 1 as the cell's colour, 1/2 being none."""

    text: str
    detail: str = ""
    shade: float | None = None


@dataclass(frozen=True)
class Grid:
    """A table with headings. The first column names the row, and the others are figures."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


Block = Text | Items | Grid


@dataclass(frozen=True)
class Fold:
    """What one source found: its headline, and below it the figures."""

    title: str
    headline: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """`answer`: the headline of all; `facts`: (name, value) below it; `against`: the reservations."""

    title: str
    about: str
    answer: str
    facts: tuple[tuple[str, str], ...]
    against: tuple[str, ...]
    blocks: tuple[Block, ...]
    folds: tuple[Fold, ...] = field(default=())
