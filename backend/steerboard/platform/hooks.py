"""Questions and notices of a lower domain that a higher one answers, so that imports go one way only.

`app.wiring.wire` sets every hook. A process that reaches one without it fails there and then: a hook that silently did
nothing would lose what a user made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class NotWired(RuntimeError):
    """The process has not called `app.wiring.wire`."""


class Hook(Generic[P, R]):
    """One function of a higher domain, called by a lower one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._handler: Callable[P, R] | None = None

    def set(self, handler: Callable[P, R]) -> None:
        """Called once a process, or again with the same function."""
        if self._handler not in (None, handler):
            raise ValueError(f"the hook {self._name} is already set")
        self._handler = handler

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._handler is None:
            raise NotWired(f"nothing answers {self._name}: call steerboard.app.wiring.wire()")
        return self._handler(*args, **kwargs)
