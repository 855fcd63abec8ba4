"""Which of a group's answers are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

Dropped = Literal["single", "equal_texts", "tied"]


class Choice(NamedTuple):
    """Places of the best and the worst answer in the group, and why neither is kept."""

    best: int
    worst: int
    dropped: Dropped | None


def choose(scores: Sequence[float], texts: Sequence[int | str], min_margin: float = 0.0) -> Choice:
    """The choice among answers by candidate; the first of equally good ones. `texts` are equal for equal answers.

    Nothing is learned from a group whose answers are one text, or where best and worst tie, within `min_margin`.
    """
    places = range(len(scores))
    best, worst = max(places, key=scores.__getitem__), min(places, key=scores.__getitem__)
    dropped: Dropped | None = None
    if len(scores) < 2:
        dropped = "single"
    elif len(set(texts)) == 1 or (best != worst and texts[best] == texts[worst]):
        dropped = "equal_texts"
    elif scores[best] - scores[worst] <= min_margin:
        dropped = "tied"
    return Choice(best, worst, dropped)


def nested_pairs(
    scores: Sequence[float], texts: Sequence[int | str], most: int, min_margin: float = 0.0
) -> list[tuple[int, int]]:
    """Places of (chosen, rejected): the best answer with the worst, the second best with the second worst, and so on,
    while they differ by more than `min_margin`; at most `most`. Pairs of equal texts are left out."""
    falling = sorted(range(len(scores)), key=lambda place: -scores[place])
    # The lowest first; of equal ones the first, as `choose` takes them.
    rising = sorted(range(len(scores)), key=scores.__getitem__)
    candidates = zip(falling[: len(scores) // 2][:most], rising, strict=False)
    return [(a, b) for a, b in candidates if scores[a] - scores[b] > min_margin and texts[a] != texts[b]]
