"""What looks at the model in training at its evaluations, for the loop that trains it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Observer(Protocol):
    """Looks at the model in training at each evaluation. Every process calls `look`; what the main one keeps travels
    with checkpoints, so that a run that resumes has the steps before."""

    def look(self, step: int) -> None: ...

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint's record."""
        ...

    def restore(self, state: Mapping[str, Any] | None) -> None:
        """Restores the state, None from a checkpoint without it."""
        ...
