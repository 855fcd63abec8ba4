"""Names that the platform gives where a person gave none, or one that is taken."""

from __future__ import annotations

from steerboard.platform.names import NAME, free_name, next_name


def test_a_free_name_is_the_name_itself_or_the_first_number_that_is_free() -> None:
    assert free_name("m", set()) == "m"
    assert free_name("m", {"m", "m-2", "m-4"}) == "m-3"


def test_a_number_never_makes_a_name_too_long() -> None:
    name = "a" * 128
    taken = {name}
    for _ in range(120):
        taken.add(free_name(name, taken))
    assert len(taken) == 121
    assert all(NAME.fullmatch(name) for name in taken)


def test_the_next_name_is_one_above_the_highest_whatever_else_begins_so() -> None:
    assert next_name("run", set()) == "run-1"
    assert next_name("run", {"run-2", "run-9", "run-x", "run-3-4", "runs-99", "run-"}) == "run-10"
    assert next_name("run", {"run-\u0663", "run-1"}) == "run-2", "digits of other scripts are not ours"
