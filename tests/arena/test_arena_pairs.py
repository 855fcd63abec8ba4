from __future__ import annotations

from collections import Counter

from arena_world import NAMES, ArenaWorld, places_of


def drawn(world: ArenaWorld, arena: str, number: int) -> list[tuple[int, int]]:
    """Pairs as they are shown, each after a vote on the one before it."""
    voter = world.person(f"voter-of-{arena}")
    found = []
    for place in range(number):
        battle = voter.answered(f"{place}?", arena=arena)
        found.append(places_of(world.sessions, battle["id"]))
        voter.vote(battle, "tie")
    return found


def test_the_same_seed_and_votes_give_the_same_pairs_and_sides(world: ArenaWorld) -> None:
    for name, seed in (("one", 7), ("two", 7), ("three", 8)):
        world.arena(name, names=NAMES[:3], seed=seed)
    one, two, three = (drawn(world, name, 8) for name in ("one", "two", "three"))
    assert one == two
    assert one != three


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
