"""Order of stages, and the cycles that forbid one.

graphlib orders by layers instead of by the file, and of the cycles it names one only, by the longest way round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def ordered(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Names so that each comes after all it needs; otherwise in the order given.

    `needs[a]` are the names that `a` uses; names that are not a key are ignored. Names on a cycle, and those
    behind one, are left out: see `cycles`.
    """
    done: dict[str, None] = {}
    waiting = list(needs)
    while True:
        ready = next((n for n in waiting if all(d in done or d not in needs for d in needs[n])), None)
        if ready is None:
            return list(done)
        done[ready] = None
        waiting.remove(ready)


def cycles(needs: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """One cycle, `[a, b, a]`, for each group of names that wait for each other, begun at the group's first name."""
    left = set(needs) - set(ordered(needs))
    loops: list[list[str]] = []
    seen: set[str] = set()
    for start in needs:
        if start not in left or start in seen:
            continue
        # Everything left waits for something left, so walking along never ends except in a cycle.
        trail: list[str] = []
        name = start
        while name not in trail and name not in seen:
            trail.append(name)
            name = next(d for d in needs[name] if d in left)
        seen.update(trail)
        if name in trail:
            loops.append(_from_first([*trail[trail.index(name) :]], list(needs)))
    return loops


def _from_first(loop: list[str], names: list[str]) -> list[str]:
    first = min(range(len(loop)), key=lambda i: names.index(loop[i]))
    turned = loop[first:] + loop[:first]
    return [*turned, turned[0]]
