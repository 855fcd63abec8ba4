"""Which two entrants meet, and on which side: drawn by the arena's seed and the number of the battle."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.arena.tables import Arena, Battle, Vote
from steerboard_statistics.pairing import pair_chances

_SHARE_OF_A = {"a": 1.0, "b": 0.0, "tie": 0.5, "both_bad": 0.5}


@dataclass(frozen=True)
class Pairing:
    """Places of the entrants, as they are shown; `seed` is of their answers."""

    a: int
    b: int
    seed: int


def draw(session: Session, arena: Arena, places: Sequence[int], number: int) -> Pairing:
    """`places`: the entrants that can answer, two or more. The same votes, seed and number give the same pair."""
    wins = _wins(session, arena)[np.ix_(places, places)]
    chances = pair_chances(wins)
    rows, columns = np.triu_indices(len(places), k=1)
    drawn = random.Random(f"{arena.seed} {number}")
    [at] = drawn.choices(range(len(rows)), weights=chances[rows, columns].tolist())
    pair = [places[rows[at]], places[columns[at]]]
    drawn.shuffle(pair)
    return Pairing(pair[0], pair[1], drawn.randrange(2**31))


def _wins(session: Session, arena: Arena) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """(entrants, entrants) of row over column, of votes that count; ties 1/2."""
    wins = np.zeros((len(arena.entrants), len(arena.entrants)))
    counted = (
        select(Battle.a, Battle.b, Vote.verdict, func.count())
        .join(Vote, Vote.battle_id == Battle.id)
        .where(Vote.arena_id == arena.id, Vote.counts)
        .group_by(Battle.a, Battle.b, Vote.verdict)
    )
    for a, b, verdict, votes in session.execute(counted):
        wins[a, b] += votes * _SHARE_OF_A[verdict]
        wins[b, a] += votes * (1 - _SHARE_OF_A[verdict])
    return wins
