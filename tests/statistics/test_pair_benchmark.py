"""A reward model over pairs: shares with their intervals, by source, and RewardBench's sections."""

from __future__ import annotations

import pytest

from steerboard_statistics.benchmarks import tally
from steerboard_statistics.benchmarks.answers import Answered, benchmark_answers
from steerboard_statistics.benchmarks.pairs import benchmark


def test_ties_are_lost_and_counted_and_the_interval_is_wilsons() -> None:
    result = benchmark([(None, 1.0, 0.0)] * 7 + [(None, 0.5, 0.5)] * 2 + [(None, 0.0, 1.0)])
    assert (result.pairs, result.ties, result.accuracy.value, result.accuracy.n) == (10, 2, 0.7, 10)
    # As statsmodels has it: proportion_confint(7, 10, method="wilson").
    assert (result.accuracy.low, result.accuracy.high) == (
        pytest.approx(0.396778, abs=1e-6),
        pytest.approx(0.892209, abs=1e-6),
    )
    assert (result.sources, result.rewardbench) == ([], None)


def test_sources_stand_by_size_and_pairs_without_one_among_them() -> None:
    result = benchmark([("b", 1, 0), ("a", 0, 0), ("a", 1, 0), (None, 0, 1), ("c", 1, 0), ("c", 2, 0), ("c", 0, 1)])
    assert [(source.source, source.accuracy.n, source.ties) for source in result.sources] == [
        ("c", 3, 0),
        ("a", 2, 1),
        ("b", 1, 0),
        (None, 1, 0),
    ]
    assert [source.accuracy.value for source in result.sources] == [pytest.approx(2 / 3), 0.5, 1.0, 0.0]
    assert result.rewardbench is None


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
    result = benchmark((f"{row:04d}{long}", 1.0, 0.0) for row in range(tally.MOST_SOURCES + 7))
    assert (len(result.sources), result.more_sources) == (tally.MOST_SOURCES, 7)
    assert max(len(source.source or "") for source in result.sources) == tally.LONGEST_NAME + 1
    assert result.accuracy.n == tally.MOST_SOURCES + 7


def test_two_models_of_a_large_benchmark_keep_the_same_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the order of the rows; equal pairs are one item."""
    monkeypatch.setattr(tally, "MOST_ITEMS", 20)
    pairs = [(f"source {row % 3}", float(row % 2), 0.5) for row in range(100)]
    hashes = [tally.item_hash(source, f"prompt {row}") for row, (source, _, _) in enumerate(pairs)]
    ours = benchmark(pairs, hashes).items
    turned = [(source, 1 - chosen, rejected) for source, chosen, rejected in reversed(pairs)]
    result = benchmark([*turned, turned[0]], [*reversed(hashes), hashes[-1]])
    theirs = result.items
    assert ours is not None
    assert theirs is not None
    assert (ours.n, ours.digest, ours.hashes) == (theirs.n, theirs.digest, theirs.hashes)
    assert (ours.n, len(ours.hashes)) == (100, 20)
    assert [a + b for a, b in zip(ours.right, theirs.right, strict=True)] == [1] * 20
    rows = [hashes.index(item) for item in theirs.hashes]
    assert [result.sources[place].source for place in theirs.sources] == [f"source {row % 3}" for row in rows]
    fewer = benchmark(pairs[:-1], hashes[:-1]).items
    assert fewer is not None
    assert fewer.digest != ours.digest
    assert benchmark(pairs).items is None


def test_ties_of_rewardbench_2_are_no_items_and_a_shared_best_answer_is_a_part_of_one() -> None:
    prompts = [
        Answered("Ties", "ref:1", [2.0, 1.0], 1, "a"),
        Answered("Ties", "tied:1", [2.0, 2.0, 1.0], 2, "b"),
        Answered("Math", "3", [1.0, 1.0, 0.0, 0.0], 1, "c"),
    ]
    result = benchmark_answers(prompts, left_out=0)
    assert result.prompts == 3
    assert result.items is not None
    assert (result.items.hashes, result.items.right) == (["c"], [0.5])
