"""What can be wrong with a recipe. All faults of one recipe are reported together."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from steerboard_contracts.errors import BadInput, ErrorLocation

MAX_ERRORS = 100


class InvalidRecipe(BadInput):
    """The recipe or an override cannot be used; nothing was started."""

    code = "invalid_recipe"
    title = "The recipe cannot be used"


class UnknownRecipe(BadInput):
    """No shipped recipe has this name."""

    code = "unknown_recipe"
    status = 404
    title = "No such recipe"


class Faults:
    """Collects errors by place, in the order of their lines."""

    def __init__(self) -> None:
        self._found: list[tuple[int, ErrorLocation]] = []
        self._derived: list[tuple[int, ErrorLocation]] = []

    def add(self, location: str, message: str, line: int | None = None, derived: bool = False) -> None:
        """`derived`: in what the planner wrote itself, so shown only where nothing that people wrote is at fault."""
        if derived:
            self._derived.append((line or 0, ErrorLocation(location=location, message=message)))
            return
        error = ErrorLocation(location=location, message=message)
        if all(error != other for _, other in self._found):
            self._found.append((line if line is not None else 10**9, error))

    def __bool__(self) -> bool:
        return bool(self._found or self._derived)

    def mentions(self, section: str) -> bool:
        """Whether a fault was found somewhere in this section, so that what follows from it need not be said."""
        return any(error.location.startswith(f"{section}.") for _, error in self._found)

    def raise_if_any(self) -> None:
        """Raises `InvalidRecipe` with every fault found so far."""
        found = self._found or self._derived
        if not found:
            return
        ordered = [error for _, error in sorted(found, key=lambda pair: pair[0])]
        count = len(ordered)
        raise InvalidRecipe(
            "the recipe has an error" if count == 1 else f"the recipe has {count} errors",
            errors=ordered[:MAX_ERRORS],
            hint="Nothing was started.",
        )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean "lr"?`, or the list of what there is when nothing is close and the list is short."""
    names = sorted(set(known))
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean `{close[0]}`?"
    if 0 < len(names) <= 12:
        return f"; known: {', '.join(names)}"
    return ""
