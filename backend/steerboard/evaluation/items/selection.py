"""Which items fit: by whom a source prefers, by disagreement, category and length. Pure, on the report's own signs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steerboard.evaluation.items.schemas import ItemCounts, ItemSource, Length, Outcome, SourceOutcome
from steerboard.evaluation.report.data import Bools, Floats, Ints
from steerboard.evaluation.report.pair_outcomes import MISSING, Signs
from steerboard.evaluation.report.sections.length_matched import MOST_RATIO

_SIGNS: dict[Outcome, int] = {"win": 1, "tie": 0, "loss": -1}
_OUTCOMES = {1: "win", 0: "tie", -1: "loss"}


@dataclass(frozen=True)
class SourceSigns:
    """One source on the pairs that are asked for, as seen from the first entrant: `signs` and `flips`
    (pairs, prompts)."""

    source: ItemSource
    signs: Signs
    flips: Signs | None

    def turned(self, turn: Bools) -> SourceSigns:
        """The signs as seen from the second entrant of those pairs."""
        signs = np.where(turn[:, None] & (self.signs != MISSING), -self.signs, self.signs)
        return SourceSigns(self.source, signs.astype(np.int8), self.flips)

    def outcome_at(self, row: int) -> SourceOutcome | None:
        """The outcome of one pair."""
        sign = int(self.signs[0, row])
        if sign == MISSING:
            return None
        flipped = self.flips is not None and int(self.flips[0, row]) == 1
        return SourceOutcome.model_validate(
            {"by": self.source.by, "source": self.source.source, "outcome": _OUTCOMES[sign], "flipped": flipped}
        )


def with_outcome(
    outcome: Outcome | None, source: SourceSigns | None, others: Sequence[SourceSigns], prompts: int
) -> Bools:
    """Prompts where some pair has the outcome by `source`: (prompts,). `disagree`: it and one of `others` prefer
    different answers; without a source, two of `others` do."""
    if outcome == "disagree":
        return _disagree(source, others, prompts)
    if source is None:
        return np.ones(prompts, dtype=np.bool_)
    if outcome == "flip":
        return np.zeros(prompts, dtype=np.bool_) if source.flips is None else _some(source.flips == 1)
    return _some(source.signs != MISSING if outcome is None else source.signs == _SIGNS[outcome])


def of_length(length: Length, a: Floats, b: Floats) -> Bools:
    """How a's answer compares with b's: (prompts,) each, NaN for no answer. `similar` as in length-matched rates."""
    match length:
        case "longer":
            fits = a > b
        case "shorter":
            fits = a < b
        case "similar":
            fits = np.maximum(a, b) <= MOST_RATIO * np.minimum(a, b)
    return np.asarray(fits, dtype=np.bool_)


def counts_of(source: SourceSigns, among: Bools) -> ItemCounts:
    """Counts of one pair."""
    signs = source.signs[0][among]
    return ItemCounts(**{name: int((signs == sign).sum()) for name, sign in _SIGNS.items()})


def in_order(positions: Ints, keys: Floats | None) -> Ints:
    """The rows in the order of their keys, NaN last, then of their positions; (rows,) each."""
    return np.argsort(positions) if keys is None else np.lexsort((positions, keys))


def page_of(ordered: Ints, fitting: Bools, begin: int, limit: int) -> tuple[Ints, bool]:
    """The first `limit` of the rows that fit, in their order from the place `begin` on; whether there are more."""
    following = ordered[begin:]
    following = following[fitting[following]]
    return following[:limit], len(following) > limit


def _disagree(source: SourceSigns | None, others: Sequence[SourceSigns], prompts: int) -> Bools:
    if not others:
        return np.zeros(prompts, dtype=np.bool_)
    up = np.any([other.signs == 1 for other in others], axis=0)
    down = np.any([other.signs == -1 for other in others], axis=0)
    if source is None:
        return _some(up & down)
    return _some(((source.signs == 1) & down) | ((source.signs == -1) & up))


def _some(fits: Bools) -> Bools:
    """(pairs, prompts) -> (prompts,)."""
    return np.asarray(fits.any(axis=0), dtype=np.bool_)
