"""How the entrants of a recipe are called: after their stage, so that rules of a gate fit every pipeline of it."""

from __future__ import annotations

from collections.abc import Sequence

from steerboard.platform.names import free_name
from steerboard_contracts.conditions.condition import Condition


def entrant_names(
    entrants: Sequence[tuple[str, Sequence[Condition], int | None]],
) -> list[list[tuple[str, Condition | None]]]:
    """(stage or model, scores, n) of each -> its (name, score) pairs: `policy`, or `policy_5` and `policy_-5` where
    scores are asked for, or `policy_best_of_8`. A name that is taken gets a number."""
    taken: set[str] = set()
    found = []
    for given, scores, best_of in entrants:
        rows: list[tuple[str, Condition | None]] = []
        for score in dict.fromkeys(scores) or [None]:
            wanted = given if score is None else f"{given}_{score.slug}"[:110]
            wanted += "" if best_of is None else f"_best_of_{best_of}"
            name = free_name(wanted, taken)
            taken.add(name)
            rows.append((name, score))
        found.append(rows)
    return found
