"""A reward model over pairs: shares with their intervals, by source, and RewardBench's sections."""

from __future__ import annotations

import pytest

from steerboard_statistics.benchmarks import tally
from steerboard_statistics.benchmarks.pairs import benchmark


def test_ties_are_lost_and_counted_and_the_interval_is_wilsons() -> None:
    found = benchmark([(None, 1.0, 0.0)] * 7 + [(None, 0.5, 0.5)] * 2 + [(None, 0.0, 1.0)])
    assert (found.pairs, found.ties, found.accuracy.value, found.accuracy.n) == (10, 2, 0.7, 10)
    # As statsmodels has it: proportion_confint(7, 10, method="wilson").
    assert (found.accuracy.low, found.accuracy.high) == (
        pytest.approx(0.396778, abs=1e-6),
        pytest.approx(0.892209, abs=1e-6),
    )
    assert (found.sources, found.rewardbench) == ([], None)


def test_sources_stand_by_size_and_pairs_without_one_among_them() -> None:
    found = benchmark([("b", 1, 0), ("a", 0, 0), ("a", 1, 0), (None, 0, 1), ("c", 1, 0), ("c", 2, 0), ("c", 0, 1)])
    assert [(one.source, one.accuracy.n, one.ties) for one in found.sources] == [
        ("c", 3, 0),
        ("a", 2, 1),
        ("b", 1, 0),
        (None, 1, 0),
    ]
    assert [one.accuracy.value for one in found.sources] == [pytest.approx(2 / 3), 0.5, 1.0, 0.0]
    assert found.rewardbench is None


def test_a_subset_of_rewardbench_gives_sections_and_others_are_named_unknown() -> None:
    pairs = [("alpacaeval-easy", 1, 0)] * 2 + [("mt-bench-easy", 0, 0)] * 3 + [("mine", 1, 0), (None, 1, 0)]
    bench = benchmark(pairs).rewardbench
    assert bench is not None
    assert bench.sections == {"Chat": pytest.approx(100 / 128)}
    assert (bench.overall, bench.unknown) == (None, ["mine"])
    assert bench.incomplete["Chat"] == ["alpacaeval-length", "alpacaeval-hard", "mt-bench-med"]
    assert set(bench.incomplete) == {"Chat", "Chat Hard", "Safety", "Reasoning"}


def test_as_many_sources_as_rows_stay_a_small_document() -> None:
    long = "x" * 5000
    found = benchmark((f"{row:04d}{long}", 1.0, 0.0) for row in range(tally.MOST_SOURCES + 7))
    assert (len(found.sources), found.more_sources) == (tally.MOST_SOURCES, 7)
    assert max(len(one.source or "") for one in found.sources) == tally.LONGEST_NAME + 1
    assert found.accuracy.n == tally.MOST_SOURCES + 7
