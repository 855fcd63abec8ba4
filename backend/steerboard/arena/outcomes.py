"""What a vote decides between the sides of its battle."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal, get_args

Letter = Literal["a", "b", "c", "d"]
Verdict = Literal["a", "b", "c", "d", "tie", "all_bad"]
LETTERS: Sequence[Letter] = get_args(Letter)
VERDICTS: Sequence[Verdict] = get_args(Verdict)
FEWEST_SIDES, MOST_SIDES = 2, len(LETTERS)


def best_of(verdict: str) -> int | None:
    """The place of the side that was chosen; None where none was."""
    places: Sequence[str] = LETTERS
    return places.index(verdict) if verdict in places else None


def decided(verdict: str, sides: int) -> list[tuple[int, int, float]]:
    """(place, later place, the former's share of the win) of the pairs that the vote decides: the best side against
    each other one, about which nothing more is known, or all of a tie."""
    best = best_of(verdict)
    if best is None:
        return [(a, b, 0.5) for a, b in combinations(range(sides), 2)]
    return [(a, b, float(a == best)) for a, b in combinations(range(sides), 2) if best in (a, b)]
