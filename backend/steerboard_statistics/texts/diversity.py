"""How varied texts are."""

from __future__ import annotations

import re
from collections.abc import Sequence


def distinct_n(texts: Sequence[str], n: int) -> float:
    """Distinct n-grams of words over all n-grams, of all texts together (Li et al., 2016); 0 where there are none."""
    grams: list[tuple[str, ...]] = []
    for text in texts:
        found = re.findall(r"\w+", text.lower())
        grams += zip(*(found[i:] for i in range(n)), strict=False)
    return len(set(grams)) / len(grams) if grams else 0.0
