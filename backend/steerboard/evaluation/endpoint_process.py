"""What the processes that ask endpoints have in common: how they tell their supervisor of events, and how they end."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable

from steerboard.evaluation.event_writer import StageEventWriter
from steerboard.platform.leases import LeaseLost
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.stage.events import Failed

log = logging.getLogger("steerboard.asking")

_CRASHED = "stage_crashed"


def failure_of(error: BaseException) -> Failed:
    """The last message of a run that failed. Never the text of an unexpected error, which may hold anything."""
    if isinstance(error, SteerboardError):
        return Failed(
            code=error.code, detail=error.detail, hint=error.hint, errors=error.errors, retryable=error.retryable
        )
    return Failed(code=_CRASHED, detail=f"{type(error).__name__}; the run's log has the traceback.", retryable=True)


def run_process(
    module: str,
    work: Callable[[str, int, StageEventWriter], int],
    failure_of: Callable[[BaseException], Failed] = failure_of,
) -> int:
    """Runs `work` of the run and attempt in the arguments, which returns the exit code. Standard output is for events
    alone; whatever else is printed goes to the log."""
    if len(sys.argv) != 3:
        print(f"usage: python -m {module} RUN ATTEMPT", file=sys.stderr)
        return 2
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    event_writer = StageEventWriter(out)
    # Not DEBUG: libraries write requests out there.
    logging.basicConfig(level="INFO", format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    for noisy in ("httpx", "httpcore"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    try:
        return work(sys.argv[1], int(sys.argv[2]), event_writer)
    except LeaseLost as lost:
        log.info("%s", lost)
        return 0
    except BrokenPipeError:
        return 1  # no one listens any more: the guardian is about to end this process group
    except Exception as error:
        failure = failure_of(error)
        if failure.code == _CRASHED:
            log.exception("asking the endpoint hit an unexpected error")
        event_writer.say(failure)
        return 1
