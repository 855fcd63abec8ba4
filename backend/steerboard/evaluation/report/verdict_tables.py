"""A judge's verdicts as tables of items: scores of answers, and pairs with both orders made one."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from steerboard.evaluation.report.data import Bools, Floats, Ints, Verdicts
from steerboard_statistics.bootstrap import divide

PAIR_STYLES = ("pairwise", "alpaca_eval", "arena_hard", "preference")


@dataclass(frozen=True)
class ScoreUnits:
    """One row per prompt and turn: `scores` (units, entrants), NaN where there is no score. An answer that was reviewed
    in both orders has the mean, and none if one of them cannot be used: the other has the bias of its position."""

    row: Ints
    turn: Ints
    scores: Floats

    def items(self, prompts: int) -> Floats:
        """The mean over the turns that were scored: (prompts, entrants)."""
        there = np.isfinite(self.scores)
        total = np.zeros((prompts, self.scores.shape[1]))
        number = np.zeros_like(total)
        np.add.at(total, self.row, np.where(there, self.scores, 0.0))
        np.add.at(number, self.row, there)
        return divide(total, number)


@dataclass(frozen=True)
class PairUnits:
    """One row per prompt, turn and pair. `value`: share of the win of `first`, the entrant with the lower column.

    `both`: judged in both orders; `flipped`: the two orders differ. `half`: how many pairs were left out
    because only one of two orders that were asked for can be used.
    """

    row: Ints
    turn: Ints
    first: Ints
    second: Ints
    value: Floats
    both: Bools
    flipped: Bools
    half: int


def score_units(verdicts: Verdicts, entrants: int) -> ScoreUnits:
    """The units of the styles `single` and `multi`."""
    scored = verdicts.b < 0
    used = verdicts.ok & scored
    turns = int(verdicts.turn.max(initial=1)) + 1
    unit = verdicts.row * turns + verdicts.turn
    keys = np.unique(unit[used])
    at = np.searchsorted(keys, unit) * entrants + verdicts.a
    cell, size = at[used], len(keys) * entrants
    total: Floats = np.bincount(cell, verdicts.value[used], minlength=size).astype(np.float64)
    number: Floats = np.bincount(cell, minlength=size).astype(np.float64)
    scores = divide(total, number)
    lost = scored & ~verdicts.ok & np.isin(unit, keys)
    scores[at[lost]] = np.nan
    return ScoreUnits(keys // turns, keys % turns, scores.reshape(len(keys), entrants))


def shown_first(verdicts: Verdicts, entrants: int) -> tuple[Ints, Ints, Floats]:
    """(prompt, the entrant shown first, all `scores` that it gave) of each review of several answers at once."""
    firsts = np.flatnonzero(verdicts.ok & (verdicts.a_first == 1) & (verdicts.b < 0))
    scores = np.full((len(firsts), entrants), np.nan)
    scores[np.arange(len(firsts)), verdicts.a[firsts]] = verdicts.value[firsts]
    reviews: dict[tuple[int, int], list[int]] = defaultdict(list)
    for review, first in enumerate(firsts.tolist()):
        reviews[int(verdicts.row[first]), int(verdicts.turn[first])].append(review)
    for other in np.flatnonzero(verdicts.ok & (verdicts.a_first == 0) & (verdicts.b < 0)).tolist():
        # An answer that is not shown first was reviewed with another one that is.
        for review in reviews.get((int(verdicts.row[other]), int(verdicts.turn[other])), ()):
            if verdicts.a[firsts[review]] != verdicts.a[other]:
                scores[review, verdicts.a[other]] = verdicts.value[other]
    return verdicts.row[firsts], verdicts.a[firsts], scores


def pair_units(verdicts: Verdicts, entrants: int, style: str) -> PairUnits:
    """Both orders of a pair become one value: `pairwise`: a tie where they differ; else their mean, in which a clear
    verdict of Arena-Hard counts by its weight.

    A pair of which one order was asked and cannot be used is left out and counted: what is left of it has the bias of
    its position. Where only one order was asked, that one counts.
    """
    pairs = (verdicts.b >= 0) & (verdicts.a != verdicts.b)
    a, b = verdicts.a[pairs], verdicts.b[pairs]
    turned = a > b
    value = np.where(turned, 1 - verdicts.value[pairs], verdicts.value[pairs])
    known = verdicts.a_first[pairs] >= 0
    # 0: the first entrant was shown first, or nothing is known of the order; 1: the second was.
    order = np.where(known & ((verdicts.a_first[pairs] == 1) == turned), 1, 0)
    ok = verdicts.ok[pairs]
    weight = np.where(style == "arena_hard", verdicts.weight[pairs], 1) * ok
    turns = int(verdicts.turn.max(initial=1)) + 1
    key = (verdicts.row[pairs] * turns + verdicts.turn[pairs]) * entrants**2
    keys, place = np.unique(key + np.minimum(a, b) * entrants + np.maximum(a, b), return_inverse=True)
    cell = place * 2 + order
    size = len(keys) * 2
    shown: Bools = np.bincount(cell, minlength=size).reshape(-1, 2) > 0
    weights: Floats = np.bincount(cell, weights=weight, minlength=size).astype(np.float64).reshape(-1, 2)
    points: Floats = weight * np.where(ok, value, 0.0)
    sums: Floats = np.bincount(cell, weights=points, minlength=size).astype(np.float64).reshape(-1, 2)
    orders = divide(sums, weights)
    usable: Bools = weights > 0
    both = usable[:, 0] & usable[:, 1]
    half: Bools = shown[:, 0] & shown[:, 1] & (usable.sum(axis=1) == 1)
    kept = (usable[:, 0] | usable[:, 1]) & ~half
    signs = np.sign(orders - 0.5)
    flipped = both & (signs[:, 0] != signs[:, 1])
    mean = divide(sums.sum(axis=1), weights.sum(axis=1))
    if style == "pairwise":
        mean = np.where(flipped, 0.5, mean)
    two, unit = keys % entrants**2, keys // entrants**2
    return PairUnits(
        row=(unit // turns)[kept],
        turn=(unit % turns)[kept],
        first=(two // entrants)[kept],
        second=(two % entrants)[kept],
        value=mean[kept],
        both=both[kept],
        flipped=flipped[kept],
        half=int(half.sum()),
    )


def pair_flips(units: PairUnits, prompts: int, entrants: int) -> Floats:
    """1 where the two orders of a prompt's pair differ, at any turn, 0 where not, NaN where not both are judged:
    (prompts, pairs)."""
    first, second = np.triu_indices(entrants, 1)
    number_of = np.zeros((entrants, entrants), dtype=np.int64)
    number_of[first, second] = np.arange(len(first))
    flips = np.full((prompts, len(first)), np.nan)
    at = units.row[units.both], number_of[units.first, units.second][units.both]
    flips[at] = 0.0
    np.maximum.at(flips, at, units.flipped[units.both].astype(np.float64))
    return flips


def pair_values(units: PairUnits, prompts: int, entrants: int) -> Floats:
    """Mean over turns of each prompt's pairs: (prompts, pairs), pairs as in `report_sources.pair_columns`."""
    first, second = np.triu_indices(entrants, 1)
    number_of = np.full((entrants, entrants), -1)
    number_of[first, second] = np.arange(len(first))
    cell = units.row * len(first) + number_of[units.first, units.second]
    size = prompts * len(first)
    count: Floats = np.bincount(cell, minlength=size).astype(np.float64)
    total: Floats = np.bincount(cell, weights=units.value, minlength=size).astype(np.float64)
    values = divide(total, count)
    return values.reshape(prompts, len(first))


def win_shares(values: Floats, entrants: int) -> Floats:
    """Each entrant's mean share over the pairs of a prompt: (prompts, pairs) -> (prompts, entrants)."""
    first, second = np.triu_indices(entrants, 1)
    total = np.zeros((len(values), entrants))
    number = np.zeros_like(total)
    there = np.isfinite(values)
    for pair, (a, b) in enumerate(zip(first, second, strict=True)):
        value, here = np.where(there[:, pair], values[:, pair], 0.0), there[:, pair]
        total[:, a] += value
        total[:, b] += here - value
        number[:, a] += here
        number[:, b] += here
    return divide(total, number)
