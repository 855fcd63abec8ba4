"""Order and cycles, over random graphs."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from steerboard.recipes.planning.graph import cycles, ordered


@st.composite
def acyclic(draw: st.DrawFn) -> dict[str, list[str]]:
    """A graph whose edges all go backwards in some hidden order, given in another one."""
    size = draw(st.integers(1, 12))
    hidden = [f"n{i}" for i in range(size)]
    needs = {
        name: draw(st.lists(st.sampled_from(hidden[:i]), max_size=4, unique=True)) if i else []
        for i, name in enumerate(hidden)
    }
    return {name: needs[name] for name in draw(st.permutations(hidden))}


graphs = st.integers(1, 8).flatmap(
    lambda n: st.fixed_dictionaries(
        {f"n{i}": st.lists(st.sampled_from([f"n{j}" for j in range(n)]), max_size=3, unique=True) for i in range(n)}
    )
)


@given(acyclic())
def test_every_acyclic_graph_is_ordered_with_needs_first(needs: dict[str, list[str]]) -> None:
    order = ordered(needs)
    assert sorted(order) == sorted(needs)
    assert all(order.index(need) < order.index(name) for name in needs for need in needs[name])
    assert cycles(needs) == []


@given(graphs)
def test_a_graph_has_an_order_or_a_cycle_and_each_cycle_found_is_one(needs: dict[str, list[str]]) -> None:
    loops = cycles(needs)
    assert bool(loops) == (len(ordered(needs)) < len(needs))
    for loop in loops:
        assert loop[0] == loop[-1]
        assert len(loop) > 1
        assert all(after in needs[before] for before, after in itertools.pairwise(loop))


@given(acyclic(), st.data())
def test_closing_a_path_makes_a_cycle_that_is_found(needs: dict[str, list[str]], data: st.DataObject) -> None:
    order = ordered(needs)
    last = data.draw(st.sampled_from(order))
    upstream, waiting = {last}, [last]
    while waiting:
        for need in needs[waiting.pop()]:
            if need not in upstream:
                upstream.add(need)
                waiting.append(need)
    first = data.draw(st.sampled_from(sorted(upstream)))
    assert cycles({**needs, first: [*needs[first], last]})


def test_the_order_of_the_file_is_kept_where_it_can_be() -> None:
    assert ordered({"c": [], "a": ["b"], "b": []}) == ["c", "b", "a"]


def test_two_separate_cycles_are_both_found() -> None:
    assert cycles({"a": ["b"], "b": ["a"], "c": ["c"], "d": ["a"]}) == [["a", "b", "a"], ["c", "c"]]
