"""What one recipe may take of the server: a file that is within every limit may still be made to be slow."""

from __future__ import annotations

import time
from collections.abc import Callable

from steerboard.platform.http.errors import ClientGone
from steerboard.recipes.errors import InvalidRecipe

# Seconds of one core. The largest recipes within the limits take a third of a second.
PLANNING_SECONDS = 2.0
# With what the database takes, and others that use the interpreter.
PATIENCE_SECONDS = 60.0


class Budget:
    """Checked in every loop of the planner, in the thread that began it. `gone`: whether the client has gone."""

    def __init__(self, seconds: float = PLANNING_SECONDS, gone: Callable[[], bool] = lambda: False) -> None:
        self._ends = time.thread_time() + seconds
        self._gives_up = time.monotonic() + PATIENCE_SECONDS
        self._gone = gone

    def check(self) -> None:
        """Raises `InvalidRecipe` (`recipe_too_slow`) and `ClientGone`."""
        if self._gone():
            raise ClientGone("the client closed the connection")
        if time.thread_time() > self._ends or time.monotonic() > self._gives_up:
            raise InvalidRecipe(
                "the recipe takes too long to read",
                code="recipe_too_slow",
                hint="Nothing was started. Cut it into several recipes, or correct its first errors.",
            )
