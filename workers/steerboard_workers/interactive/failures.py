"""Errors while answering: as answers keep them, and a second try after memory ran out."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from steerboard.playground.errors import problem_document
from steerboard_contracts.errors import OutOfMemory, SteerboardError
from steerboard_workers.interactive.models import ModelCache
from steerboard_workers.stages.__main__ import failure_of

log = logging.getLogger(__name__)

Result = TypeVar("Result")


def problem_of(error: Exception) -> dict[str, Any]:
    """A typed error as it is; any other one by its signs, with its traceback in the log only."""
    if not isinstance(error, SteerboardError):
        log.error("an answer failed", exc_info=error)
        if _is_out_of_memory(error):
            error = _out_of_memory()
        else:
            failure = failure_of(error)
            error = SteerboardError(failure.detail, code=failure.code, hint=failure.hint)
    return problem_document(error)


def with_memory(models: ModelCache, work: Callable[[], Result]) -> Result:
    """`work`, and once more with an empty cache when memory ran out. Raises `OutOfMemory` the second time."""
    try:
        return work()
    except Exception as error:
        if not _is_out_of_memory(error):
            raise
        log.warning("memory ran out (%s); all models are unloaded for a second try", error)
    # Outside of the handler: its traceback would keep the tensors of the first try alive.
    models.clear()
    try:
        return work()
    except Exception as error:
        if not _is_out_of_memory(error):
            raise
    models.clear()
    raise _out_of_memory()


def _is_out_of_memory(error: Exception) -> bool:
    return failure_of(error).code == OutOfMemory.code


def _out_of_memory() -> OutOfMemory:
    return OutOfMemory(
        "The interactive worker ran out of memory, also with no other model loaded.",
        hint="Ask for fewer columns or shorter answers, or start an interactive worker on a larger machine.",
    )
