"""What can be wrong with a recipe. All faults of one recipe are reported together."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Fault:
    """`field`: the dotted path of what is wrong (`stages.sft.lr`), empty for the recipe as a whole. `location` adds the
    line or the override that it comes from."""

    field: str
    location: str
    message: str
    line: int | None = None


class Faults:
    """Collects faults by place, in the order of their lines."""

    def __init__(self) -> None:
        self._found: list[Fault] = []
        self._derived: list[Fault] = []
        self._codes: set[str | None] = set()

    def add(
        self,
        location: str,
        message: str,
        line: int | None = None,
        *,
        field: str = "",
        derived: bool = False,
        code: str | None = None,
    ) -> None:
        """`derived`: in what the planner wrote itself, so shown only where nothing that people wrote is at fault.

        `code`: where a program can do something about it; the error has it when all of its faults do."""
        self._codes.add(code)
        fault = Fault(field, location, message, line)
        if derived:
            self._derived.append(fault)
        elif all((location, message) != (other.location, other.message) for other in self._found):
            self._found.append(fault)

    def __bool__(self) -> bool:
        return bool(self._found or self._derived)

    def mentions(self, section: str) -> bool:
        """Whether a fault was found somewhere in this section, so its consequences need not be reported."""
        return any(fault.location.startswith(f"{section}.") for fault in self._found)

    def ordered(self) -> list[Fault]:
        """By line, at most `MAX_ERRORS`; those of overrides come last."""
        found = sorted(self._found, key=lambda fault: 10**9 if fault.line is None else fault.line)
        return (found or sorted(self._derived, key=lambda fault: fault.line or 0))[:MAX_ERRORS]

    def raise_if_any(self) -> None:
        """Raises `InvalidRecipe` with every fault found so far."""
        count = len(self._found or self._derived)
        if not count:
            return
        raise InvalidRecipe(
            "the recipe has an error" if count == 1 else f"the recipe has {count} errors",
            errors=[ErrorLocation(location=fault.location, message=fault.message) for fault in self.ordered()],
            code=next(iter(self._codes)) if len(self._codes) == 1 else None,
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
