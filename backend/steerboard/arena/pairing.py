"""Which entrants meet, and on which side: drawn by the arena's seed and the number of the battle.

Keyed with a secret of the server: with the seed and the votes so far alone, a voter could otherwise name the sides.
"""

from __future__ import annotations

import hashlib
import hmac
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.arena.outcomes import decided
from steerboard.arena.tables import Arena, Battle, Vote
from steerboard_statistics.pairing import joining_chances, pair_chances


@dataclass(frozen=True)
class Pairing:
    """Places of the entrants, as they are shown; `seed` is of their answers."""

    entrants: list[int]
    seed: int


def draw(session: Session, arena: Arena, places: Sequence[int], number: int, key: bytes) -> Pairing:
    """`places`: the entrants that can answer, two or more. A pair is drawn, then others join it one by one until the
    arena's sides are taken. The same votes, seed, number and key give the same
    entrants."""
    wins = _wins(session, arena)[np.ix_(places, places)]
    chances = pair_chances(wins)
    rows, columns = np.triu_indices(len(places), k=1)
    drawn = random.Random(hmac.digest(key, f"{arena.seed} {number}".encode(), hashlib.sha256))
    [at] = drawn.choices(range(len(rows)), weights=chances[rows, columns].tolist())
    meeting = [int(rows[at]), int(columns[at])]
    while len(meeting) < min(arena.sides, len(places)):
        meeting += drawn.choices(range(len(places)), weights=joining_chances(chances, meeting).tolist())
    entrants = [places[place] for place in meeting]
    drawn.shuffle(entrants)
    return Pairing(entrants, drawn.randrange(2**31))


def _wins(session: Session, arena: Arena) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """(entrants, entrants) of row over column, of votes that count; ties 1/2. The pairs of a vote share its weight."""
    wins = np.zeros((len(arena.entrants), len(arena.entrants)))
    counted = (
        select(Battle.entrants, Vote.verdict, func.count())
        .join(Vote, Vote.battle_id == Battle.id)
        .where(Vote.arena_id == arena.id, Vote.counts)
        .group_by(Battle.entrants, Vote.verdict)
    )
    for entrants, verdict, votes in session.execute(counted):
        pairs = decided(verdict, len(entrants))
        for side, other, share in pairs:
            wins[entrants[side], entrants[other]] += votes / len(pairs) * share
            wins[entrants[other], entrants[side]] += votes / len(pairs) * (1 - share)
    return wins
