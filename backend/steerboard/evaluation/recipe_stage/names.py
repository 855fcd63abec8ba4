"""How the entrants of a recipe are called: after their stage, so that rules of a gate fit every pipeline of it."""

from __future__ import annotations

from collections.abc import Sequence

from steerboard.platform.names import free_name
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.decoding import guided_suffix
from steerboard_contracts.run_kinds.evaluate import Entrant


def entrant_names(
    entrants: Sequence[tuple[str, Entrant]],
) -> list[list[tuple[str, Condition | None]]]:
    """(stage or model, entrant) of each -> its (name, score) pairs.

    `policy`, or `policy_5` and `policy_-5` where scores are asked for, `policy_5_w3` with guidance,
    `policy_best_of_8`, or `policy_8_samples`. A name that is taken gets a number.
    """
    taken: set[str] = set()
    named = []
    for given, entrant in entrants:
        rows: list[tuple[str, Condition | None]] = []
        for score in dict.fromkeys(entrant.scores) or [None]:
            wanted = given if score is None else f"{given}_{score.slug}"[:110]
            wanted += "" if entrant.guidance == 1 else guided_suffix(entrant.guidance)
            wanted += "" if entrant.best_of is None else f"_best_of_{entrant.best_of}"
            wanted += "" if entrant.samples == 1 else f"_{entrant.samples}_samples"
            name = free_name(wanted, taken)
            taken.add(name)
            rows.append((name, score))
        named.append(rows)
    return named
