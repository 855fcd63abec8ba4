from __future__ import annotations

from collections import Counter

from arena_world import NAMES, ArenaWorld, places_of


def drawn(world: ArenaWorld, arena: str, number: int) -> list[list[int]]:
    """Entrants as they are shown, each after a vote on the one before it."""
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
    # As it was before a battle could have more than two sides.
    assert one == FORMER


def test_groups_of_three_are_seeded_and_the_one_about_whom_least_is_known_is_in_nearly_all(world: ArenaWorld) -> None:
    """Only votes on the first three are given."""
    met = []
    for name in ("one", "two"):
        world.arena(name, names=NAMES, sides=3, seed=3)
        voter = world.person(f"voter-of-{name}")
        for place in range(16):
            battle = voter.answered(f"{place}?", ("x", "y", "z"), arena=name)
            met.append(places_of(world.sessions, battle["id"]))
            assert len(set(met[-1])) == 3
            if 3 not in met[-1]:
                voter.vote(battle, "tie")
    assert met[:16] == met[16:]
    assert sum(3 in places for places in met[8:16]) >= 7


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
