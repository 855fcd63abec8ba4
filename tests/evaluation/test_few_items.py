"""A source with few items is warned of only where they tell no two entrants apart."""

from __future__ import annotations

import pytest

from steerboard.evaluation.report.sections.outcomes import few_items
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.comparison import Comparison, PairRow


def comparison(items: int, *significant: bool) -> Comparison:
    rate = Estimate(value=0.9, n=items)
    pairs = [
        PairRow(a="dpo", b=f"rival-{n}", wins=9, ties=0, losses=1, win_rate=rate, significant=is_significant)
        for n, is_significant in enumerate(significant)
    ]
    return Comparison(
        scores=[], pairs=pairs, friedman=None, bradley_terry=[], items=items, winner=None, why="Nothing is known."
    )


@pytest.mark.parametrize(
    ("items", "significant", "warned"),
    [
        (0, [False], []),
        (1, [False], ["1 item is too few to tell entrants apart"]),
        (9, [False, False], ["9 items are too few to tell entrants apart"]),
        (9, [False, True], []),
        (10, [False], []),
    ],
)
def test_few_items_are_warned_of_unless_they_suffice(items: int, significant: list[bool], warned: list[str]) -> None:
    assert few_items(comparison(items, *significant)) == warned
