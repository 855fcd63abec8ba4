"""Texts that are nearly the same: MinHash of word n-grams finds candidates, their exact similarity decides.

Records have several texts (the prompt, the chosen and the rejected answer of a pair), and two are near duplicates only
where **each** of their texts is: pairs about one long prompt share most of their words, yet teach different things.
A banded MinHash index (Leskovec et al., Mining of Massive Datasets, ch. 3) whose bands take hashes of every text finds
candidates; the n-grams of candidates are then compared exactly, so nothing is a near duplicate by chance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rensa import RMinHash

from steerboard_statistics.texts.text_normal import words

# 5-grams and a similarity of 0.8: Lee et al., "Deduplicating Training Data Makes Language Models Better",
# arXiv 2107.06499, app. A.
WORDS_PER_GRAM = 5
SIMILARITY = 0.8
# Below this the index would miss near duplicates.
LEAST_SIMILARITY = 0.5

_HASHES = 64
_SEED = 20240513
_BATCH = 1000
# Kept records that one is compared with at most. Records that are alike, but not enough, would otherwise each be
# compared with all others.
_MOST_COMPARED = 32

Bits = NDArray[np.bool_]
Grams = tuple[NDArray[np.int64], ...]


class NearDuplicate(NamedTuple):
    """`of`: the first kept record that this one repeats. `similarity`: of the text that differs most."""

    record: int
    of: int
    similarity: float


def grams(text: str) -> list[str]:
    """The word 5-grams of a text, whatever its case and punctuation; a shorter text is one n-gram."""
    tokens = words(text) or [text.strip()]
    if len(tokens) <= WORDS_PER_GRAM:
        return [" ".join(tokens)]
    starts = range(WORDS_PER_GRAM)
    return list(map(" ".join, zip(*(tokens[at:] for at in starts), strict=False)))


def similarity(first: Grams, other: Grams) -> float:
    """The smallest Jaccard similarity over the texts of two records."""
    return min(_jaccard(a, b) for a, b in zip(first, other, strict=True))


def comparable(texts: Iterable[str]) -> Grams:
    """What `similarity` compares: the n-grams of each text as sorted numbers, 8 bytes each."""
    return tuple(np.unique(np.fromiter(map(hash, grams(text)), np.int64)) for text in texts)


class NearDuplicateIndex:
    """Sketches of records, 256 bytes each (512 below a similarity of 0.75).

    Two records that are exactly as similar as asked, in each of three texts, are found with a probability above 0.99;
    more similar ones more surely. Sketches have a fixed seed, so equal data give equal answers.
    """

    def __init__(self, threshold: float = SIMILARITY, texts: int = 3) -> None:
        if not LEAST_SIMILARITY <= threshold <= 1:
            raise ValueError(f"the similarity is between {LEAST_SIMILARITY} and 1, not {threshold}")
        self._threshold = threshold
        self._texts = texts
        self._rows_per_band = 2 if threshold >= 0.75 else 1
        self._bands = _HASHES // self._rows_per_band
        self._waiting: list[list[str]] = []
        self._keys: list[NDArray[np.uint64]] = []
        # Odd numbers: each band's hashes become one number.
        drawn = np.random.default_rng(_SEED).integers(0, 2**63, (self._bands, texts * self._rows_per_band), np.uint64)
        self._mix = drawn * np.uint64(2) + np.uint64(1)
        self._compared: dict[int, Grams] = {}
        self._buckets: dict[int, list[int]] = defaultdict(list)

    def add(self, texts: Sequence[str]) -> None:
        """The next record, counted from 0."""
        self._waiting += map(grams, texts)
        if len(self._waiting) >= _BATCH * self._texts:
            self._sketch()

    def candidates(self, among: Bits) -> Bits:
        """Which of the records `among` share a band with another of them: all others are like no other."""
        keys = self._all_keys()
        candidates = np.zeros(len(keys), np.bool_)
        for band in range(self._bands):
            _, place, counts = np.unique(keys[among, band], return_inverse=True, return_counts=True)
            candidates[np.flatnonzero(among)[counts[place] > 1]] = True
        return candidates

    def look_up(self, record: int, texts: Sequence[str]) -> NearDuplicate | None:
        """The kept record that this candidate repeats; without one it is kept. To be asked in the order of records."""
        candidate = comparable(texts)
        keys = [hash((band, key)) for band, key in enumerate(self._all_keys()[record].tolist())]
        alike = sorted({kept for key in keys if key in self._buckets for kept in self._buckets[key]})
        for kept in alike[:_MOST_COMPARED]:
            likeness = similarity(candidate, self._compared[kept])
            if likeness >= self._threshold:
                return NearDuplicate(record, kept, likeness)
        self._compared[record] = candidate
        for key in keys:
            if len(self._buckets[key]) < _MOST_COMPARED:
                self._buckets[key].append(record)
        return None

    def _all_keys(self) -> NDArray[np.uint64]:
        if self._waiting:
            self._sketch()
        if len(self._keys) != 1:
            self._keys = [np.concatenate(self._keys) if self._keys else np.empty((0, self._bands), np.uint64)]
        return self._keys[0]

    def _sketch(self) -> None:
        digests: list[list[int]] = RMinHash.digest_matrix_from_token_sets(self._waiting, _HASHES, _SEED).to_rows()
        self._waiting = []
        hashes = np.array(digests, np.uint64).reshape(-1, self._texts, self._bands, self._rows_per_band)
        by_band = hashes.transpose(0, 2, 1, 3).reshape(len(hashes), self._bands, -1)
        self._keys.append((by_band * self._mix).sum(axis=2, dtype=np.uint64))


def _jaccard(first: NDArray[Any], other: NDArray[Any]) -> float:
    common = len(np.intersect1d(first, other, assume_unique=True))
    return common / (len(first) + len(other) - common)
