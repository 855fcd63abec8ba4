"""What can go wrong while annotating. No text here may tell an entrant from another."""

from __future__ import annotations

from steerboard_contracts.errors import BadInput, SteerboardError


class NotTaken(SteerboardError):
    """A ranking came too late to count. What was ranked is kept in the history."""

    status = 409


class LockLost(NotTaken):
    """The lock ran out, and others have ranked or hold the item."""

    code = "lock_lost"
    title = "Others are ranking this item"


class CampaignClosed(NotTaken):
    code = "campaign_closed"
    title = "The campaign is closed"


class TaskEnded(SteerboardError):
    """The task was submitted or skipped."""

    code = "task_ended"
    status = 409
    title = "This item is done"


class NotQualified(SteerboardError):
    """The annotator did not pass the gold items of the campaign."""

    code = "not_qualified"
    status = 409
    title = "The qualification was not passed"


class BadRanks(BadInput):
    """Too few or too many ranks, or criteria that the campaign does not have."""

    code = "bad_ranks"
    title = "The ranking is not complete"


class BadScores(BadInput):
    """A score is missing or outside its criterion's scale."""

    code = "bad_scores"
    title = "The scores are not complete"


class BadSpans(BadInput):
    """A flagged passage is outside the answer, or its label is none of the campaign's."""

    code = "bad_spans"
    title = "A flagged passage does not fit the answer"


class BadReplies(BadInput):
    """A reply is missing, or is none that its question takes."""

    code = "bad_replies"
    title = "The questions are not answered"


class BadCorrection(BadInput):
    """No text, or none asked for."""

    code = "bad_correction"
    title = "The correction has no text"
