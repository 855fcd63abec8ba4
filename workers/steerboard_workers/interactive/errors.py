"""Errors while answering: as answers keep them, and a second try after memory ran out."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from steerboard.playground.errors import problem_document
from steerboard_contracts.errors import OutOfMemory, SteerboardError
from steerboard_workers.interactive.models import ModelCache

log = logging.getLogger(__name__)

Result = TypeVar("Result")


def problem_of(error: Exception) -> dict[str, Any]:
    """A typed error as it is; of any other one the traceback is in the log only."""
    if not isinstance(error, SteerboardError):
        log.error("an answer failed", exc_info=error)
        error = SteerboardError(f"The worker hit {type(error).__name__}; its log has the traceback.")
    return problem_document(error)


def with_memory(models: ModelCache, work: Callable[[], Result], *, blind: bool = False) -> Result:
    """`work`, and once more with an empty cache when memory ran out; `blind` as for `ModelCache.using`. Raises
    `OutOfMemory` the second time."""
    try:
        return work()
    except OutOfMemory as error:
        log.warning("memory ran out (%s); all models are unloaded for a second try", error)
    models.clear(blind=blind)
    try:
        return work()
    except OutOfMemory as error:
        models.clear(blind=blind)
        raise OutOfMemory(
            "The interactive worker ran out of memory, also with no other model loaded.",
            hint="Ask for fewer columns or shorter answers, or start an interactive worker on a larger machine.",
        ) from error
