"""Rows: on a terminal a table that fits it, elsewhere tab-separated lines with every column and nothing cut."""

from __future__ import annotations

import datetime as dt
import textwrap
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

_GAP = "  "
_SHORTEST_WORDS = 16
_SHORTEST_ID = 8

Row = Sequence[Any]


@dataclass(frozen=True)
class Column:
    """`show` writes a value for a terminal; a pipe gets it as it is. Columns with a higher `drop` leave first where the
    terminal is narrow, those with 0 never. `words`: free text, cut with an ellipsis, or with `wrap` continued on the
    next line. `id`: only its end is shown."""

    heading: str
    show: Callable[[Any], str] = str
    drop: int = 0
    right: bool = False
    words: bool = False
    wrap: bool = False
    id: bool = False
    styles: Mapping[str, str] = field(default_factory=dict)


def print_table(
    console: Console, columns: Sequence[Column], rows: Sequence[Row], *, heading: bool = False, bold: int | None = None
) -> None:
    """`heading`: the line of headings also where there is no terminal, for tables within a longer text. `bold`: the row
    to look at first."""
    if not console.is_terminal:
        lines = [[column.heading for column in columns]] if heading else []
        lines += [[plain(value) for value in row] for row in rows]
        for line in lines:
            console.file.write("\t".join(line) + "\n")  # rich would make spaces of the tabs
        return
    cells = [[_shown(column, row[place]) for row in rows] for place, column in enumerate(columns)]
    for place, column in enumerate(columns):
        if column.id:
            cells[place] = id_ends(cells[place])
    kept = [place for place in range(len(columns)) if not rows or any(cells[place])]
    widths = {place: max(map(cell_len, (columns[place].heading, *cells[place]))) for place in kept}
    kept = _fitting(columns, kept, widths, console.width)
    if _width(kept, widths) > console.width:
        _print_stacked(console, columns, kept, cells)
        return
    console.print(_line([_cell(columns[place], columns[place].heading, widths[place], "bold") for place in kept]))
    for number in range(len(rows)):
        # A row has as many lines as its longest cell that wraps.
        lines = [_lines(columns[place], cells[place][number], widths[place]) for place in kept]
        for parts in zip_longest(*lines, fillvalue=""):
            pairs = zip(kept, parts, strict=True)
            cells_of_line = [_cell(columns[place], part, widths[place]) for place, part in pairs]
            console.print(_line(cells_of_line), style="bold" if number == bold else None, soft_wrap=True)


def id_ends(ids: Sequence[str]) -> list[str]:
    """The ends of ids by which these are told apart, and which every command takes. Ids of one moment begin alike."""
    known = set(ids)
    digits = _SHORTEST_ID
    while digits < 12 and len({id_[-digits:] for id_ in known}) < len(known):
        digits += 1
    return [id_[-digits:] for id_ in ids] if len({id_[-digits:] for id_ in known}) == len(known) else list(ids)


def plain(value: Any) -> str:
    """A value on one line and without escape sequences, whatever its origin."""
    if value is None:
        return ""
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return "".join(" " if unicodedata.category(letter) == "Cc" else letter for letter in text)


def moment(value: str) -> str:
    """`2026-11-22 06:57`, in UTC as everywhere."""
    return dt.datetime.fromisoformat(value).astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M")


def _shown(column: Column, value: Any) -> str:
    return "" if value is None or value == [] else plain(column.show(value) if not isinstance(value, list) else value)


def _fitting(columns: Sequence[Column], kept: list[int], widths: dict[int, int], width: int) -> list[int]:
    """The columns for which there is room. Changes the widths of those that hold words."""
    while True:
        over = _width(kept, widths) - width
        elastic = [place for place in reversed(kept) if columns[place].words]
        if over <= sum(max(0, widths[place] - _SHORTEST_WORDS) for place in elastic):
            for place in elastic:
                given = max(0, min(over, widths[place] - _SHORTEST_WORDS))
                widths[place] -= given
                over -= given
            return kept
        droppable = [place for place in kept if columns[place].drop]
        if not droppable:
            return kept
        kept = [place for place in kept if place != max(droppable, key=lambda place: columns[place].drop)]


def _width(kept: list[int], widths: dict[int, int]) -> int:
    return sum(widths[place] for place in kept) + len(_GAP) * (len(kept) - 1)


def _lines(column: Column, text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(1, width)) or [""] if column.wrap else [text]


def _cell(column: Column, text: str, width: int, style: str | None = None) -> Text:
    cell = Text(text, column.styles.get(text, "") if style is None else style, no_wrap=True)
    if column.words:
        cell.truncate(width, overflow="ellipsis")
    space = " " * (width - cell_len(cell.plain))
    return Text.assemble(space, cell) if column.right else Text.assemble(cell, space)


def _line(cells: list[Text]) -> Text:
    line = Text(_GAP).join(cells)
    line.rstrip()
    return line


def _print_stacked(console: Console, columns: Sequence[Column], kept: list[int], cells: list[list[str]]) -> None:
    """A name that is wider than what is left has a line of its own; the terminal folds it, so that it can be copied."""
    for number in range(len(cells[0])):
        console.print(Text(cells[kept[0]][number], "bold"), soft_wrap=True)
        for place in kept[1:]:
            if cells[place][number]:
                value = Text(cells[place][number], columns[place].styles.get(cells[place][number], ""))
                console.print(Text.assemble(_GAP, f"{columns[place].heading} ".lstrip(), value), soft_wrap=True)
