"""Prompts that also occur in training texts, exactly or nearly, whatever their spelling of the same words.

The n-grams of the prompts are held; training texts stream past them one by one, so their number costs time only.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Literal, NamedTuple

from steerboard_statistics.texts.text_normal import normalise, words

# 8-grams, and at least 70% of them: PaLM's rule for contaminated prompts (arXiv 2204.02311, sec. 8).
WORDS_PER_GRAM = 8
NEAR = 0.7
# The fewest words of an n-gram; a prompt needs one more for a near match to differ from an exact one.
_FEWEST = 3


class Match(NamedTuple):
    """`prompt`: its place among the prompts. `overlap`: share of its distinct n-grams that the text has, 1 if exact."""

    prompt: int
    kind: Literal["exact", "near"]
    overlap: float


class PromptIndex:
    """The prompts of an evaluation, to look for in any number of texts.

    Exact: the same words in the same order. Near: at least `near` of the prompt's distinct word n-grams occur in one
    text, which may be far longer. n is 8; half the words for prompts under 16, at least 3; prompts of fewer than 4
    words match exactly only, since their few words turn up anywhere.
    """

    def __init__(self, prompts: Sequence[str], *, near: float = NEAR, words_per_gram: int = WORDS_PER_GRAM) -> None:
        self._exact: dict[str, list[int]] = defaultdict(list)
        self._holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
        self._grams: list[int] = []
        self._needed: list[int] = []
        for place, prompt in enumerate(prompts):
            if normal := normalise(prompt):
                self._exact[normal].append(place)
            grams = _grams(words(prompt), words_per_gram)
            for gram in grams:
                self._holders[gram].append(place)
            self._grams.append(len(grams))
            self._needed.append(math.ceil(near * len(grams) - 1e-9))
        self._sizes = sorted({len(gram) for gram in self._holders})
        # Nearly every place of a text is ruled out by its first three words.
        self._heads = {gram[:_FEWEST] for gram in self._holders}

    def match(self, text: str) -> list[Match]:
        """The prompts that occur in a text, in their order."""
        tokens = words(text)
        exact = self._exact.get(" ".join(tokens) or text.strip(), [])
        matches = [Match(place, "exact", 1.0) for place in exact]
        for place, count in self._counts(tokens).items():
            if count >= self._needed[place] and place not in exact:
                matches.append(Match(place, "near", count / self._grams[place]))
        return sorted(matches) if len(matches) > 1 else matches

    def _counts(self, tokens: list[str]) -> Counter[int]:
        """How many distinct n-grams of each prompt are among the words of a text."""
        heads = self._heads
        starts = [i for i, head in enumerate(zip(tokens, tokens[1:], tokens[2:], strict=False)) if head in heads]
        seen = {tuple(tokens[i : i + size]) for i in starts for size in self._sizes} & self._holders.keys()
        return Counter(place for gram in seen for place in self._holders[gram])


def _grams(tokens: list[str], size: int) -> set[tuple[str, ...]]:
    if len(tokens) <= _FEWEST:
        return set()
    n = min(size, max(len(tokens) // 2, _FEWEST))
    return {tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)}
