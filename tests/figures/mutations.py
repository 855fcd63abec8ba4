"""What may happen to a file of judgments, and how much of it is lost then."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Hashable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from steerboard_statistics.validity import UNUSABLE_THRESHOLD

MOST = UNUSABLE_THRESHOLD

Row = Any
"""An object, or the text of a broken line."""

Change = tuple[str, float, int]
"""(what is done, to which share of the rows, seed)"""

CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["drop", "double", "shuffle", "corrupt", "silence", "swap"]),
        st.sampled_from([0.01, 0.03, 0.2, 0.8]),
        st.integers(0, 999),
    ),
    max_size=3,
)
# `make test-all` explores; the default suite has to stay quick.
mutated = settings(
    max_examples=60 if settings.default is settings.get_profile("explore") else 6,
    deadline=None,
    derandomize=settings.default is not settings.get_profile("explore"),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def changed(
    rows: list[Row], changes: list[Change], silence: Callable[[Row], Row], swap: Callable[[Row], Row]
) -> list[Row]:
    for what, share, seed in changes:
        draw = random.Random(seed)
        hit = [draw.random() < share for _ in rows]
        if what == "drop":
            rows = [row for row, gone in zip(rows, hit, strict=True) if not gone]
        elif what == "double":
            rows = rows + [row for row, twice in zip(rows, hit, strict=True) if twice]
        elif what == "shuffle":
            rows = draw.sample(rows, len(rows))
        else:
            done = {"corrupt": lambda row: json.dumps(row)[:-9], "silence": silence, "swap": swap}[what]
            rows = [
                done(row) if is_hit and isinstance(row, dict) else row for row, is_hit in zip(rows, hit, strict=True)
            ]
    return rows


def latest(
    rows: list[Row], key: Callable[[Row], Hashable], parsed: Callable[[Row], bool] = lambda row: True
) -> dict[Hashable, Row]:
    """The newest row of each key, in the order of the rows that count. A row that was not `parsed` takes the place of
    none that was."""
    newest: dict[Hashable, Row] = {}
    for row in rows:
        if isinstance(row, dict) and (key(row) not in newest or parsed(row) >= parsed(newest[key(row)])):
            newest.pop(key(row), None)
            newest[key(row)] = row
    return newest


def broken_share(rows: list[Row]) -> float:
    return sum(isinstance(row, str) for row in rows) / len(rows)


def lost_share(rows: list[Row], kept: dict[Any, Row], usable: Callable[[Row], bool]) -> float:
    """The lost share of what counts and of lines that no one can read, together."""
    silent = sum(not usable(row) for row in kept.values()) / len(kept) if kept else 1.0
    return together(silent, broken_share(rows))


def together(lost: float, broken: float) -> float:
    """Lines that no one can read are taken to be about each in proportion to its rows."""
    return round(1 - (1 - lost) * (1 - broken), 12)  # 5% is 5%, however it was computed
