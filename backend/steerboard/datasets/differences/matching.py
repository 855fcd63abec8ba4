"""Which rows of two datasets belong together by their content."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.int64]
Places = NDArray[np.int64]
NONE = -1


@dataclass(frozen=True)
class RowHashes:
    """Hashes by row, of the prompt and of the other fields."""

    prompts: Hashes
    rest: Hashes

    @property
    def nbytes(self) -> int:
        return self.prompts.nbytes + self.rest.nbytes

    @property
    def whole(self) -> Hashes:
        with np.errstate(over="ignore"):
            mixed: Hashes = self.prompts * np.int64(0x5851F42D4C957F2D) + self.rest
        return mixed


@dataclass(frozen=True)
class Matching:
    """`partner`: by row of the first dataset, the row of the second one, or -1. `changed`: whether they differ."""

    partner: Places
    changed: NDArray[np.bool_]


def match(before: RowHashes, after: RowHashes) -> Matching:
    """Equal rows first, whatever their order; then rows with the same prompt, in their order; then rows whose other
    fields occur once among those left in each dataset."""
    partner = np.full(len(before.prompts), NONE, np.int64)
    changed = np.zeros(len(partner), np.bool_)
    left, other = np.arange(len(partner)), np.arange(len(after.prompts))
    for old, new, equal, once in (
        (before.whole, after.whole, True, False),
        (before.prompts, after.prompts, False, False),
        (before.rest, after.rest, False, True),
    ):
        places, others = _pairs(old[left], new[other], once=once)
        changed[left[places]] = not equal
        partner[left[places]] = other[others]
        left, other = np.delete(left, places), np.delete(other, others)
    return Matching(partner, changed)


def _pairs(old: Hashes, new: Hashes, *, once: bool) -> tuple[Places, Places]:
    """Places of equal values, the first occurrence with the first one. `once`: only values that occur once in each."""
    _, codes = np.unique(np.concatenate([old, new]), return_inverse=True)
    first, second = codes[: len(old)], codes[len(old) :]
    if once:
        alone = (np.bincount(first, minlength=len(codes)) == 1) & (np.bincount(second, minlength=len(codes)) == 1)
        first, second = np.where(alone[first], first, -1), np.where(alone[second], second, -2)
    else:
        first, second = _numbered(first), _numbered(second)
    _, places, others = np.intersect1d(first, second, return_indices=True)
    return places, others


def _numbered(codes: Places) -> Places:
    """Each occurrence of a code as a number of its own, equal for the n-th occurrence in either dataset."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else ordered
    lengths = np.diff(np.r_[starts, len(ordered)])
    nth = np.empty(len(codes), np.int64)
    nth[order] = np.arange(len(codes)) - np.repeat(starts, lengths)
    numbered: Places = codes * np.int64(2**31) + nth
    return numbered
