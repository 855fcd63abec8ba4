from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence

from steerboard.accounts.tables import User
from steerboard.arena.pairing import draw
from steerboard.arena.tables import Arena, Battle, Vote
from steerboard.platform.database import transaction
from support.rows.arena_world import NAMES, PROJECT, ArenaWorld, places_of


def drawn(world: ArenaWorld, arena: str, number: int, texts: Sequence[str] = ("x", "y")) -> list[list[int]]:
    """Entrants as they are shown, each after a vote on the one before it."""
    voter = world.person(f"voter-of-{arena}")
    places = []
    for place in range(number):
        battle = voter.answered(f"{place}?", texts, arena=arena)
        places.append(places_of(world.sessions, battle["id"]))
        voter.vote(battle, "tie")
    return places


def test_who_knows_the_seed_but_not_the_servers_secret_cannot_tell_who_meets(world: ArenaWorld) -> None:
    for name in ("one", "two", "three"):
        world.arena(name, names=NAMES[:3], seed=7)
    one, two = (drawn(world, name, 8) for name in ("one", "two"))
    assert one == two
    world.key("another key")
    assert drawn(world, "three", 8) != one
    # What a seed alone gave, before pairs were keyed.
    assert one != [[0, 2], [2, 1], [1, 2], [1, 0], [2, 0], [0, 1], [0, 1], [0, 2]]


def test_nobody_chooses_the_seed_of_an_arena(world: ArenaWorld) -> None:
    body = {"name": "mine", "entrants": [{"endpoint": name} for name in NAMES[:2]], "seed": 7}
    assert world.owner.post(f"{PROJECT}/arenas", json=body).status_code == 422


def test_groups_are_seeded_and_nobody_is_in_one_twice(world: ArenaWorld) -> None:
    met = []
    for name in ("one", "two"):
        world.arena(name, names=NAMES, sides=3, seed=3)
        met.append(drawn(world, name, 6, ("x", "y", "z")))
    assert met[0] == met[1]
    assert {len(set(places)) for places in met[0]} == {3}


def test_those_about_whom_little_is_known_join_each_other(world: ArenaWorld) -> None:
    """The first two of four are the only ones that have met. The others would be in 130 of 200 groups if the third
    joined by lot."""
    made, key = world.arena(names=NAMES, sides=3), world.key("a key")
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
        groups = [set(draw(session, arena, range(4), number, key).entrants) for number in range(200)]
    assert sum({2, 3} <= group for group in groups) > 145


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
