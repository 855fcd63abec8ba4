"""Hooks: a lower domain asks a higher one without knowing it."""

from __future__ import annotations

import pytest

from steerboard.app.wiring import wire
from steerboard.platform.hooks import Hook, NotWired


def test_a_hook_that_nobody_set_fails_where_it_is_asked() -> None:
    hook: Hook[[int], int] = Hook("double")
    with pytest.raises(NotWired, match="double"):
        hook(2)
    hook.set(lambda number: 2 * number)
    assert hook(2) == 4


def test_two_answers_to_one_hook_are_refused_and_wiring_twice_is_not() -> None:
    hook: Hook[[], None] = Hook("once")
    hook.set(wire)
    hook.set(wire)
    with pytest.raises(ValueError, match="once"):
        hook.set(lambda: None)
    wire()
    wire()
