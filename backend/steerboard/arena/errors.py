"""What an arena refuses. No text here may tell an entrant from another."""

from __future__ import annotations

from steerboard.platform.http.errors import Conflict, TooManyAttempts
from steerboard_contracts.errors import BadInput


class ArenaClosed(Conflict):
    """It begins no more battles; votes on those that have begun are still taken."""

    code = "arena_closed"
    title = "The arena is closed"


class BadEntrants(BadInput):
    """Fewer than two entrants, or two that are the same."""

    code = "bad_entrants"
    title = "These entrants cannot meet"


class AnswersMissing(Conflict):
    """An answer is still being written."""

    code = "answers_missing"
    title = "Not all entrants have answered yet"


class AnswerFailed(Conflict):
    """An answer failed, and no other one comes in its place."""

    code = "answer_failed"
    title = "An entrant did not answer"


class UnknownTurn(BadInput):
    """A turn that was never asked."""

    code = "unknown_turn"
    title = "The battle has no such turn"


class AlreadyVoted(Conflict):
    """The battle has another vote, which stays."""

    code = "already_voted"
    title = "This battle already has a vote"


class TooFast(TooManyAttempts):
    """More battles, turns or votes in a minute than a person makes."""

    code = "too_fast"
    title = "Rate limit exceeded"
