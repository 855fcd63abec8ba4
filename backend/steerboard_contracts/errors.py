"""The one error base class: every failure a user can meet has a stable code, a place and a way out."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class ErrorLocation(BaseModel):
    """One place at fault: `line 57123`, `stages.dt.lr (line 14)`, `body.name`."""

    location: str
    message: str


class SteerboardError(Exception):
    """Base of all expected failures.

    `code` is snake_case and stable, `status` the HTTP status it maps to, `hint` suggests what to do next,
    `retryable` informs the supervisor whether another attempt can succeed.
    """

    code = "internal_error"
    status = 500
    title = "Something went wrong"
    retryable = False

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        errors: list[ErrorLocation] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or type(self).code
        self.hint = hint
        self.errors = errors or []
        self.extra = extra or {}

    def __str__(self) -> str:
        places = "".join(f"\n  {place.location}: {place.message}" for place in self.errors[:20])
        hint = f"\n  {self.hint}" if self.hint else ""
        return f"{self.detail}{places}{hint}"


class BadInput(SteerboardError):
    """The data or the config that a user gave cannot be used; another attempt would fail alike."""

    code = "bad_input"
    status = 422
    title = "The input cannot be used"


class BadRow(BadInput):
    """A row of a file or dataset breaks the rules of its kind."""

    code = "bad_row"
    title = "Some rows cannot be used"


class EmptySelection(BadInput):
    """A filter, split or mixture kept nothing."""

    code = "empty_selection"
    title = "Nothing is left to work on"


class UnsafeModelFile(BadInput):
    """A model folder holds pickled weights or code instead of safetensors."""

    code = "unsafe_model_file"
    title = "The model's files are not safe to load"


class BadModel(BadInput):
    """A model's files are damaged, do not belong together, or are none that a language model has."""

    code = "bad_model"
    title = "The model cannot be used"


class EngineMissing(SteerboardError):
    """A run asks for an engine that its worker does not have."""

    code = "engine_missing"
    title = "The engine is not installed"


class OutOfMemory(SteerboardError):
    """Device or host memory ran out. Retryable: another worker may have more free."""

    code = "out_of_memory"
    title = "Out of memory"
    retryable = True


class NoSpaceLeft(SteerboardError):
    """A disk or a quota is full."""

    code = "no_space_left"
    status = 507
    title = "No space left"
    retryable = True
