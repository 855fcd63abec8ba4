"""What can be wrong with a recipe. All faults of one recipe are reported together."""

from __future__ import annotations

from dataclasses import dataclass

from steerboard_contracts.errors import BadInput, ErrorLocation

# The most errors that are shown, and the most faults that are looked for.
MAX_ERRORS = 100
_MAX_FAULTS = 1000
# The longest text of one fault: what is wrong may be repeated in it.
_MAX_TEXT = 500


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
    line or the override that it comes from. `line` and `column` are those of the file, from 1."""

    field: str
    location: str
    message: str
    line: int | None = None
    column: int | None = None


class Faults:
    """Collects faults by place, in the order of their lines."""

    def __init__(self) -> None:
        self._found: list[Fault] = []
        self._derived: list[Fault] = []
        self._codes: set[str | None] = set()
        self._known: set[tuple[str, str]] = set()
        self._sections: set[str] = set()

    def add(
        self,
        location: str,
        message: str,
        line: int | None = None,
        *,
        column: int | None = None,
        field: str = "",
        derived: bool = False,
        code: str | None = None,
        of: str | None = None,
    ) -> None:
        """Raises `InvalidRecipe` once there are more than anyone reads.

        `derived`: in what the planner wrote itself, so shown only where nothing that people wrote is at fault.

        `code`: where a program can do something about it; the error has it when all of its faults do. `of`: what makes
        faults with the same message one; their location, where it is not given."""
        identity = (of or location, message)
        if identity in self._known:
            return
        self._known.add(identity)
        self._codes.add(code)
        location, message = _shortened(location), _shortened(message)
        fault = Fault(field, location, message, line, column)
        if derived:
            self._derived.append(fault)
        else:
            section, dot, _ = location.partition(".")
            if dot:
                self._sections.add(section)
            self._found.append(fault)
        if len(self._found) + len(self._derived) > _MAX_FAULTS:
            self.raise_if_any()

    def __bool__(self) -> bool:
        return bool(self._found or self._derived)

    def mentions(self, section: str) -> bool:
        """Whether a fault was found somewhere in this section, so its consequences need not be reported."""
        return section in self._sections

    def ordered(self) -> list[Fault]:
        """The faults by line, at most `MAX_ERRORS`; those of overrides come last."""
        faults = sorted(self._found, key=lambda fault: 10**9 if fault.line is None else fault.line)
        return (faults or sorted(self._derived, key=lambda fault: fault.line or 0))[:MAX_ERRORS]

    def raise_if_any(self) -> None:
        """Raises `InvalidRecipe` with every fault found so far."""
        count = len(self._found or self._derived)
        if not count:
            return
        raise InvalidRecipe(
            _counted(count),
            errors=[ErrorLocation(location=fault.location, message=fault.message) for fault in self.ordered()],
            code=next(iter(self._codes)) if len(self._codes) == 1 else None,
            hint="Nothing was started.",
        )


def _counted(count: int) -> str:
    if count > _MAX_FAULTS:
        return f"the recipe has over {_MAX_FAULTS:,} errors"
    return "the recipe has an error" if count == 1 else f"the recipe has {count} errors"


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + "..."
