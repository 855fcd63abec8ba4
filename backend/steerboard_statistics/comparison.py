"""One source's comparison of the entrants: means, pairs, tests, strengths, and the winner if there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steerboard_contracts.report.sections.comparison import Comparison, ScoreRow
from steerboard_statistics.bootstrap import RESAMPLES, Floats, Resamples, divide
from steerboard_statistics.bradley_terry import strength_rows
from steerboard_statistics.paired import pair_rows
from steerboard_statistics.ranks import friedman, without_noise
from steerboard_statistics.winners import winner_of


def compare(
    items: Sequence[Mapping[str, float]],
    entrants: Sequence[str],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    pairwise_only: bool = False,
) -> Comparison:
    """Entrants by their score on each item, higher the better, annotators already averaged.

    An entrant may be missing on an item (no key, None or NaN): means are over the items it is on, pairs over those of
    both. Wins and ties are counted per item, equal scores being a tie. `pairwise_only` leaves out Friedman and
    Bradley-Terry.
    """
    rows = [[item.get(name) for name in entrants] for item in items]
    scores = np.array(rows, dtype=np.float64).reshape(len(rows), len(entrants))
    return compare_scores(scores, entrants, seed=seed, resamples=resamples, pairwise_only=pairwise_only)


def compare_scores(
    scores: ArrayLike,
    entrants: Sequence[str],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    pairwise_only: bool = False,
) -> Comparison:
    """`compare` for an array (items, entrants), NaN for what is missing."""
    data = without_noise(scores)
    data = data[np.isfinite(data).any(axis=1)]
    pairs = list(combinations(range(len(entrants)), 2))
    differences = pair_differences(data)
    comparison = _comparison(entrants, pairs, data, differences, seed, resamples, with_strengths=not pairwise_only)
    return comparison if pairwise_only else comparison.model_copy(update={"friedman": friedman(data)})


def compare_pairs(
    rows: Sequence[tuple[int, str, str, float]],
    entrants: Sequence[str],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Comparison:
    """Entrants by verdicts on pairs: rows (item, a, b, value), value 1 where a wins, 0 where b does, 1/2 for a tie.

    Values between them are preferences. Several verdicts of an item on the same two, in either order, are averaged, and
    the item is won by a above 1/2, so two that contradict each other are a tie (where a win and a tie are to be one as
    well, as in MT-Bench, give 1/2 for both). Scores are mean win shares: the
    average over an item's pairs of an entrant, then over items. `difference` is the mean of 2 value - 1, from -1 to 1,
    and Wilcoxon's test is on value - 1/2. Only pairs that were judged are in the table. No Friedman, since no one is
    ranked among all.
    """
    places = {name: place for place, name in enumerate(entrants)}
    known = [
        (item, places[a], places[b], value) for item, a, b, value in rows if a in places and b in places and a != b
    ]
    values, pairs = pair_values(known, len(entrants))
    shares = _win_shares(values, pairs, len(entrants))
    differences = without_noise(2 * values - 1)
    return _comparison(entrants, pairs, shares, differences, seed, resamples, with_strengths=True)


def pair_differences(scores: Floats) -> Floats:
    """Differences of every two entrants in the order of `combinations`: (items, entrants) -> (items, pairs)."""
    first, second = np.triu_indices(scores.shape[1], 1)
    return without_noise(scores[:, first] - scores[:, second])


def pair_values(rows: Sequence[tuple[int, int, int, float]], entrants: int) -> tuple[Floats, list[tuple[int, int]]]:
    """Mean value of each item and pair: rows (item, a, b, value of a) -> (items, pairs), NaN where none; the pairs."""
    if not rows:
        return np.zeros((0, 0)), []
    table = np.array(rows, dtype=np.float64)
    table = table[np.isfinite(table).all(axis=1)]
    a, b = table[:, 1].astype(np.int64), table[:, 2].astype(np.int64)
    value = np.where(a < b, table[:, 3], 1 - table[:, 3])
    item_ids, item = np.unique(table[:, 0], return_inverse=True)
    codes, pair = np.unique(np.minimum(a, b) * entrants + np.maximum(a, b), return_inverse=True)
    shape = (len(item_ids), len(codes))
    cell, size = item * shape[1] + pair, shape[0] * shape[1]
    number = np.bincount(cell, minlength=size).astype(np.float64)
    total = np.bincount(cell, weights=value, minlength=size).astype(np.float64)
    return divide(total, number).reshape(shape), [(int(code) // entrants, int(code) % entrants) for code in codes]


def _win_shares(values: Floats, pairs: Sequence[tuple[int, int]], entrants: int) -> Floats:
    """Each entrant's mean value over the pairs of each item that it is in: (items, entrants)."""
    there = np.isfinite(values)
    total, number = np.zeros((len(values), entrants)), np.zeros((len(values), entrants))
    for place, (a, b) in enumerate(pairs):
        value = np.where(there[:, place], values[:, place], 0.0)
        total[:, a] += value
        total[:, b] += there[:, place] - value
        number[:, [a, b]] += there[:, [place]]
    return divide(total, number)


def _comparison(
    entrants: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    scores: Floats,
    differences: Floats,
    seed: int,
    resamples: int,
    *,
    with_strengths: bool,
) -> Comparison:
    """scores (items, entrants), differences (items, pairs), NaN for what is missing. One set of resamples for all."""
    items = len(scores)
    drawn = Resamples(items, resamples, seed)
    order = _item_order(entrants, pairs, scores, differences)
    scores, differences = scores[order], differences[order]
    both = np.hstack([scores, differences])
    counts = [int(n) for n in np.isfinite(both).sum(axis=0)]
    means = drawn.estimates(both)
    score_rows = [ScoreRow(entrant=name, mean=mean) for name, mean in zip(entrants, means, strict=False)]
    signs = np.sign(differences)
    table = pair_rows([(entrants[a], entrants[b]) for a, b in pairs], signs, differences, means[len(entrants) :])
    strengths = []
    if with_strengths:
        wins = _wins(signs, pairs, len(entrants))
        shape = (len(entrants), len(entrants))
        resampled = drawn.sums(wins).reshape(resamples, *shape)
        total = wins.sum(axis=0).reshape(shape)
        strengths = strength_rows(entrants, total, resampled, counts[: len(entrants)], items)
    winner, why = winner_of(score_rows, table)
    return Comparison(
        scores=score_rows,
        pairs=table,
        friedman=None,
        bradley_terry=strengths,
        items=items,
        winner=winner,
        why=why,
    )


def _item_order(
    entrants: Sequence[str], pairs: Sequence[tuple[int, int]], scores: Floats, differences: Floats
) -> NDArray[np.intp]:
    """An order by values alone, so that the figures are the same in any order of the items, and of the entrants, whose
    columns count by name: scores (items, entrants), differences (items, pairs) -> (items,)."""
    named: dict[tuple[str, ...], Floats] = {(entrants[place],): scores[:, place] for place in range(len(entrants))}
    for place, (a, b) in enumerate(pairs):
        first, second = sorted((entrants[a], entrants[b]))
        named[first, second] = differences[:, place] if first == entrants[a] else -differences[:, place]
    keys = [named[name] for name in sorted(named)]
    return np.lexsort(keys) if keys else np.arange(len(scores))


def _wins(signs: Floats, pairs: Sequence[tuple[int, int]], entrants: int) -> Floats:
    """Wins of each entrant over each on each item, ties 1/2: signs (items, pairs) -> (items, entrants squared)."""
    wins = np.zeros((len(signs), entrants * entrants))
    share = np.where(np.isfinite(signs), (signs + 1) / 2, 0.0)
    other = np.where(np.isfinite(signs), (1 - signs) / 2, 0.0)
    for place, (a, b) in enumerate(pairs):
        wins[:, a * entrants + b] = share[:, place]
        wins[:, b * entrants + a] = other[:, place]
    return wins
