"""Battles of two or more models as pairs of their sides.

A vote for the best of k answers is k - 1 pairs, the best one against each other; nothing is known of the others among
themselves. Where every side is chosen in proportion to its strength (Luce's axiom, as in the model of Plackett and
Luce), the odds of the best one against any other are those of Bradley-Terry, so ratings of such pairs are consistent
(Azari Soufiani et al., "Generalized Method-of-Moments for Rank Aggregation", NIPS 2013). But pairs of one vote are not
independent: together they weigh as much as a battle of two, each 1 / (k - 1) (as in Khetan and Oh, "Data-driven Rank
Breaking for Efficient Rank Aggregation", JMLR 17, 2016), and intervals are over draws of battles, not of pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """`value`: 1, 0.5 or 0, the share of the win that is a's. `style`: of a's answer and of b's, each feature by name;
    None where the texts are not known. `battle`: pairs with the same are of one vote; None: the pair is a whole one."""

    a: str
    b: str
    value: float
    style: tuple[Mapping[str, float], Mapping[str, float]] | None = None
    battle: str | None = None


def by_battle(pairs: Sequence[PairedComparison]) -> list[list[int]]:
    """The places of each battle's pairs, in the order of the battles' first ones."""
    places_of: dict[str | int, list[int]] = {}
    for place, pair in enumerate(pairs):
        places_of.setdefault(place if pair.battle is None else pair.battle, []).append(place)
    return list(places_of.values())


def weights(pairs: Sequence[PairedComparison]) -> Floats:
    """(pairs,): one over the number of pairs of its battle."""
    shares = np.ones(len(pairs))
    for places in by_battle(pairs):
        shares[places] = 1 / len(places)
    return shares


def outcomes(pairs: Sequence[PairedComparison]) -> dict[str, list[float]]:
    """Each model's mean share of the win in its pairs, for each of its battles: 1 for the best side, 0 for another one,
    0.5 for a tie."""
    by_model: dict[str, list[float]] = {}
    for places in by_battle(pairs):
        shares: dict[str, list[float]] = {}
        for pair in (pairs[place] for place in places):
            shares.setdefault(pair.a, []).append(pair.value)
            shares.setdefault(pair.b, []).append(1 - pair.value)
        for name, values in shares.items():
            by_model.setdefault(name, []).append(sum(values) / len(values))
    return by_model


@dataclass(frozen=True)
class Kinds:
    """Pairs that are alike, once, and the battles that are alike, once.

    `values` (kinds of pairs,). `counts` (kinds of battles,): how many there are. An entry is a pair of a kind of
    battles: `battle`, `pair` and `weight` (entries,) are the kinds of both and the pair's weight.
    """

    values: Floats
    counts: Floats
    battle: Ints
    pair: Ints
    weight: Floats

    def weights(self, battles: Floats) -> Floats:
        """(kinds of pairs,): what each weighs where there are as many `battles` (kinds of battles,) of each kind."""
        entries = battles[self.battle] * self.weight
        drawn: Floats = np.bincount(self.pair, weights=entries, minlength=len(self.values)).astype(np.float64)
        return drawn


def kinds_of(pairs: Sequence[PairedComparison], weight: Floats, kind: Sequence[int], values: Floats) -> Kinds:
    """kind (pairs,): the kind of each, a place in `values`; weight (pairs,)."""
    alike = Counter(
        tuple(sorted((int(kind[place]), float(weight[place])) for place in places)) for places in by_battle(pairs)
    )
    battles = sorted(alike)
    entries = [(number, *entry) for number, battle in enumerate(battles) for entry in battle]
    return Kinds(
        values=values,
        counts=np.array([alike[battle] for battle in battles], dtype=np.float64),
        battle=np.array([entry[0] for entry in entries], dtype=np.int64),
        pair=np.array([entry[1] for entry in entries], dtype=np.int64),
        weight=np.array([entry[2] for entry in entries], dtype=np.float64),
    )
