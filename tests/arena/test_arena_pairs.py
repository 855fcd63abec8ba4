from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence

from steerboard.accounts.tables import User
from steerboard.arena.pairing import draw
from steerboard.arena.tables import Arena, Battle, Vote
from steerboard.platform.database import transaction
from support.rows.arena_world import NAMES, ArenaWorld, places_of


def drawn(world: ArenaWorld, arena: str, number: int, texts: Sequence[str] = ("x", "y")) -> list[list[int]]:
    """Entrants as they are shown, each after a vote on the one before it."""
    voter = world.person(f"voter-of-{arena}")
    found = []
    for place in range(number):
        battle = voter.answered(f"{place}?", texts, arena=arena)
        found.append(places_of(world.sessions, battle["id"]))
        voter.vote(battle, "tie")
    return found


def test_the_same_seed_and_votes_give_the_same_pairs_and_sides(world: ArenaWorld) -> None:
    for name, seed in (("one", 7), ("two", 7), ("three", 8)):
        world.arena(name, names=NAMES[:3], seed=seed)
    one, two, three = (drawn(world, name, 8) for name in ("one", "two", "three"))
    assert one == two
    assert one != three
    # As it was before a battle could have more than two sides.
    assert one == FORMER


def test_groups_are_seeded_and_nobody_is_in_one_twice(world: ArenaWorld) -> None:
    met = []
    for name in ("one", "two"):
        world.arena(name, names=NAMES, sides=3, seed=3)
        met.append(drawn(world, name, 6, ("x", "y", "z")))
    assert met[0] == met[1]
    assert {len(set(places)) for places in met[0]} == {3}


def test_those_about_whom_little_is_known_join_each_other(world: ArenaWorld) -> None:
    """Of four, only the first two have met. The others would be in 130 of 200 groups if the third joined by lot."""
    made = world.arena(names=NAMES, sides=3)
    with transaction(world.sessions) as session:
        session.add(user := User(name="anna"))
        session.flush()
        about = {"arena_id": uuid.UUID(made["id"]), "user_id": user.id}
        for number in range(40):
            entrants = {"entrants": [0, 1], "project_id": world.project.id, "number": number, "seed": 1}
            session.add(battle := Battle(**about, **entrants))
            session.flush()
            told = {"submission": "s", "verdict": "tie", "entrant_set": "0 1", "prompt_hash": str(number)}
            session.add(Vote(battle_id=battle.id, counts=True, conversations=[], **about, **told))
    with world.sessions() as session:
        arena = session.get_one(Arena, uuid.UUID(made["id"]))
        groups = [set(draw(session, arena, range(4), number).entrants) for number in range(200)]
    assert sum({2, 3} <= group for group in groups) > 145


FORMER = [[0, 2], [2, 1], [1, 2], [1, 0], [2, 0], [0, 1], [0, 1], [0, 2]]


def test_a_pair_that_has_met_often_meets_less(world: ArenaWorld) -> None:
    """Only votes on the first two are given: nearly all later battles are with the third."""
    world.arena(names=NAMES[:3])
    pairs = Counter[frozenset[str]]()
    for place in range(40):
        if place % 18 == 0:
            voter = world.person(f"voter-{place}")
        battle = voter.answered(f"{place}?")
        pairs[met := frozenset(world.sides(battle))] += place >= 20
        if met == set(NAMES[:2]):
            voter.vote(battle, "tie")
    assert sum(pairs.values()) == 20
    assert pairs[frozenset(NAMES[:2])] <= 3
