"""How large a recipe may be, counted before anything is written out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Size:
    """Values, and characters in them."""

    values: int = 0
    characters: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.values + other.values, self.characters + other.characters)

    def __mul__(self, times: int) -> Size:
        return Size(self.values * times, self.characters * times)

    @property
    def is_too_large(self) -> bool:
        return self.values > MAX_VALUES or self.characters > MAX_CHARACTERS


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
