"""Ids as OpenAI's clients see them: a prefix, and the hex digits of ours."""

from __future__ import annotations

import uuid

FILE, RESULTS, JOB, EVENT, CHECKPOINT = "file-", "file-results-", "ftjob-", "ftevent-", "ftckpt-"


def shown(prefix: str, id_: uuid.UUID) -> str:
    return prefix + id_.hex


def meant(prefix: str, given: str) -> uuid.UUID | None:
    """Returns None where it is not an id of that kind."""
    digits = given.removeprefix(prefix)
    if not given.startswith(prefix) or len(digits) != 32:
        return None
    try:
        return uuid.UUID(hex=digits)
    except ValueError:
        return None
