"""Rows by the prompt that they answer, for what compares several responses to one prompt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from steerboard_contracts.errors import BadInput

Row = dict[str, Any]


def groups_of(rows: Iterable[Row], dataset: str) -> list[list[Row]]:
    """The responses to each prompt, by candidate; groups in the order of their first rows.

    Raises `BadInput` (`no_groups`) for rows that do not say which prompt they answer: equal texts are not proof.
    """
    groups: dict[int, list[Row]] = {}
    for row in rows:
        groups.setdefault(group_of(row, dataset), []).append(row)
    return [sorted(group, key=lambda row: int(row["candidate"])) for group in groups.values()]


def group_of(row: Row, dataset: str) -> int:
    """The row's group. Raises `BadInput` (`no_groups`)."""
    if row.get("group") is None:
        raise BadInput(
            f"dataset {dataset}: row {row.get('row')} does not name its group of answers",
            code="no_groups",
            hint="Generate with several answers per prompt, or import the columns `group` and `candidate`.",
        )
    return int(row["group"])
