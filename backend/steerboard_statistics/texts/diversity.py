"""How varied texts are, and how much they repeat."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

# A text repeats itself where one run of so many words occurs so often.
RUN = 4
TIMES = 3

Words = Sequence[str]


def plain_words(text: str) -> list[str]:
    """The words of a text in lower case, as the usual scripts for distinct n-grams have them."""
    return re.findall(r"\w+", text.lower())


def distinct_share(texts: Sequence[Words], n: int) -> float:
    """Distinct n-grams of words over all n-grams, of all texts together (Li et al., 2016); 0 where there are none."""
    seen: set[tuple[str, ...]] = set()
    total = 0
    for text in texts:
        seen.update(_grams(text, n))
        total += max(0, len(text) - n + 1)
    return len(seen) / total if total else 0.0


def repeats_itself(text: Words) -> bool:
    """Whether `RUN` words occur in the same order `TIMES` times or more; occurrences may overlap."""
    if len(text) < RUN + TIMES - 1:
        return False
    return Counter(_grams(text, RUN)).most_common(1)[0][1] >= TIMES


def _grams(text: Words, n: int) -> Iterator[tuple[str, ...]]:
    return zip(*(text[start:] for start in range(n)), strict=False)
