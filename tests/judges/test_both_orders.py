"""Two orders of a pair become one value, in the same way for one pair and for whole tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerboard.evaluation.judges.both_orders import PAIR_STYLES, OrderedVerdict, together
from steerboard.evaluation.report.data import Verdicts
from steerboard.evaluation.report.verdict_tables import pair_units

# Which entrant is `a`, whether it was shown first, its value (None: unusable), the weight.
VERDICT = st.tuples(st.booleans(), st.booleans(), st.sampled_from([None, 0.0, 0.25, 0.5, 1.0]), st.sampled_from([1, 3]))


@given(st.sampled_from(PAIR_STYLES), st.lists(VERDICT, min_size=1, max_size=5))
def test_one_pair_has_the_value_that_it_has_in_the_report(
    style: str, verdicts: list[tuple[bool, bool, float | None, int]]
) -> None:
    verdicts = [
        (swapped, first, value, weight if style == "arena_hard" else 1) for swapped, first, value, weight in verdicts
    ]
    table = Verdicts(
        row=np.zeros(len(verdicts), dtype=np.int64),
        turn=np.ones(len(verdicts), dtype=np.int64),
        a=np.array([int(swapped) for swapped, *_ in verdicts]),
        b=np.array([int(not swapped) for swapped, *_ in verdicts]),
        a_first=np.array([int(first) for _, first, *_ in verdicts]),
        value=np.array([np.nan if value is None else value for _, _, value, _ in verdicts]),
        weight=np.array([weight for *_, weight in verdicts]),
        ok=np.array([value is not None for _, _, value, _ in verdicts]),
    )
    units = pair_units(table, 2, style)
    verdict = together(
        (
            OrderedVerdict(value if value is None or not swapped else 1 - value, turned=first == swapped, weight=weight)
            for swapped, first, value, weight in verdicts
        ),
        style,
    )
    if verdict is None:
        assert (len(units.value), units.half) == (0, 0)
    elif verdict.half:
        assert (len(units.value), units.half) == (0, 1)
    else:
        assert units.value == pytest.approx([verdict.value])
