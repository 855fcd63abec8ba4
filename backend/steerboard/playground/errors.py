"""What the playground refuses."""

from __future__ import annotations

from typing import Any

from steerboard.platform.http.errors import Conflict
from steerboard_contracts.errors import BadInput, SteerboardError


class NoScores(BadInput):
    """A score was requested from a model that was not trained with reward prompts."""

    code = "no_score_format"
    title = "This model does not take scores"


class WrongRole(BadInput):
    """A model cannot do what it was named for: write answers, or score them."""

    code = "wrong_role"
    title = "This model cannot do that"


class AlreadyEnded(Conflict):
    """There is nothing left to cancel."""

    code = "already_ended"
    title = "It has already ended"


class StillOpen(Conflict):
    """Only answers that are complete can be shared."""

    code = "still_open"
    title = "Some answers are not complete"


def problem_document(error: SteerboardError) -> dict[str, Any]:
    """An error as an answer or a curve keeps it."""
    return {
        "code": error.code,
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "hint": error.hint,
    }
