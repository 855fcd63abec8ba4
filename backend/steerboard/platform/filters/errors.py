"""What is wrong with a filter, and where."""

from __future__ import annotations

from collections.abc import Sequence

from steerboard.platform.filters.expression import Word
from steerboard.platform.http.errors import InvalidRequest
from steerboard_contracts.errors import ErrorLocation


class BadFilter(InvalidRequest):
    """A filter or a sort cannot be read, or names a field that is not there. `extra`: `position` from 0 and `length` of
    what is wrong, and `suggestions` to write instead."""

    code = "bad_filter"
    title = "The filter cannot be understood"

    def __init__(
        self,
        message: str,
        at: int,
        length: int = 1,
        *,
        what: str = "filter",
        suggestions: Sequence[str] = (),
        hint: str | None = None,
    ) -> None:
        place = f"{what}, character {at + 1}"
        super().__init__(
            message,
            hint=hint,
            errors=[ErrorLocation(location=place, message=message)],
            extra={"position": at, "length": length, "suggestions": list(suggestions)},
        )

    @classmethod
    def at_word(
        cls, message: str, word: Word, *, what: str = "filter", suggestions: Sequence[str] = (), hint: str | None = None
    ) -> BadFilter:
        return cls(message, word.at, word.length, what=what, suggestions=suggestions, hint=hint)
