"""What one recipe may take of the server: how large it may be, counted before anything is written out, and how long
planning it may take, since a file that is within every limit may still be made to be slow."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steerboard.platform.http.errors import ClientGone
from steerboard.recipes.errors import InvalidRecipe
from steerboard_contracts.errors import ErrorLocation

MAX_BYTES = 256 * 1024
MAX_VALUES = 20_000
# The size of all texts, once aliases, rounds and variants are written out.
MAX_CHARACTERS = 4 * MAX_BYTES
MAX_DEPTH = 20
MAX_KEY = 200
MAX_STAGES = 200
MAX_INPUTS = 100
# The most items of one list of a stage, such as the entrants of an evaluation.
MAX_REFERENCES = 500
# Seconds of one core. The largest recipes within the limits take a third of a second.
PLANNING_SECONDS = 2.0
# With what the database takes, and others that use the interpreter.
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Size:
    """Values, and characters in them."""

    values: int = 0
    characters: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.values + other.values, self.characters + other.characters)

    def __mul__(self, times: int) -> Size:
        return Size(self.values * times, self.characters * times)


def size_of(data: Any) -> Size:
    """Counts no further than it takes to exceed a limit: shared values may repeat without end."""
    values = characters = 0
    waiting = [data]
    while waiting and values <= MAX_VALUES and characters <= MAX_CHARACTERS:
        value = waiting.pop()
        values += 1
        if isinstance(value, dict):
            characters += sum(map(len, value))
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            characters += len(value)
    return Size(values, characters)


def refuse_many(location: str, what: str, number: int, most: int) -> None:
    """Raises `InvalidRecipe` (`recipe_too_large`) where there are more than `most`."""
    if number > most:
        raise too_large(location, f"has {number:,} {what}; the limit is {most:,}")


def refuse_large(location: str, size: Size, written_out: str = "") -> None:
    """The same for values and their texts. `written_out`: ` with all its rounds`, or the like."""
    if size.values > MAX_VALUES:
        raise too_large(location, f"has over {MAX_VALUES:,} values{written_out}")
    if size.characters > MAX_CHARACTERS:
        raise too_large(location, f"has over {MAX_CHARACTERS:,} characters{written_out}")


def too_large(location: str, message: str) -> InvalidRecipe:
    return InvalidRecipe(
        "the recipe is too large",
        code="recipe_too_large",
        errors=[ErrorLocation(location=location, message=message)],
        hint="Nothing was started.",
    )


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
