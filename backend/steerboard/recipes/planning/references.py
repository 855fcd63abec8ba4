"""Where stages name each other, before they are read: found, changed, and copied with the lines that they are from."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from steerboard.recipes.document import Document
from steerboard.recipes.places import Path, Place
from steerboard_contracts.run_kinds import kind_of


def references(fields: Mapping[str, Any]) -> Iterator[Path]:
    """Where a stage names others: `model`, `rewards.0`, `parts.1.data`."""
    kind = kind_of(fields.get("run"), fields.get("method"))
    for slot in kind.slots if kind else ():
        value = fields.get(slot)
        if isinstance(value, str):
            yield (slot,)
        for i, item in enumerate(value if isinstance(value, list) else ()):
            if isinstance(item, str):
                yield slot, i
            elif isinstance(item, dict):
                yield from ((slot, i, key) for key in ("data", "model") if isinstance(item.get(key), str))


def value_at(fields: Any, at: Path) -> Any:
    for part in at:
        fields = fields[part]
    return fields


def replace_at(fields: dict[str, Any], at: Path, change: Callable[[str], str]) -> None:
    holder = value_at(fields, at[:-1])
    holder[at[-1]] = change(holder[at[-1]])


def rewired(fields: Any, wired: Callable[[str], str]) -> Any:
    """A copy of a stage's fields with each reference changed."""
    fields = copy.deepcopy(fields)
    if isinstance(fields, dict):
        for at in list(references(fields)):
            replace_at(fields, at, wired)
    return fields


def write_copy(document: Document, template: Path, path: Path, fields: Any) -> None:
    """Puts a stage's changed copy at `path`, each value at the place that it has in the file."""
    document.put(path, fields, Place(line=1))
    document.places.copy(template, path)
    document.copies[str(path[1])] = template


def widen_list(document: Document, path: Path, items: Mapping[int, Path], meant: Callable[[str], list[str]]) -> None:
    """`items`: by place in the list, where in the item its reference is; each becomes one item for each that it
    means."""
    found: list[tuple[Any, Place | None]] = []
    for i, item in enumerate(value_at(document.data, path)):
        place = document.place((*path, i))
        if i not in items:
            found.append((item, place))
            continue
        for name in meant(str(value_at(item, items[i]))):
            found.append(({**item, items[i][0]: name} if items[i] else name, place))
    document.put(path, [item for item, _ in found], document.place(path) or Place(line=1))
    for i, (_, place) in enumerate(found):
        if place:
            document.places[(*path, i)] = place
