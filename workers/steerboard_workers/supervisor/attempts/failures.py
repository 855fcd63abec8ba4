"""Turns an error in the worker itself into the failure that an attempt ends with."""

from __future__ import annotations

import logging
from collections.abc import Callable

from sqlalchemy.exc import OperationalError

from steerboard.platform.leases import LeaseLost
from steerboard.platform.storage.disk import database_is_full, no_space_for_rows
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.files.disk import FULL
from steerboard_workers.supervisor.attempts.attempt import Attempt

log = logging.getLogger(__name__)


def guarded(attempt: Attempt, work: Callable[[], Failure | None]) -> Failure | None:
    """Do `work`; every error but a lost lease becomes the attempt's failure."""
    try:
        return work()
    except LeaseLost:
        raise
    except SteerboardError as error:
        log.warning("run %s: %s", attempt.run.name, error, exc_info=True)
        return Failure.of(error)
    except OSError as error:
        log.warning("run %s: %s", attempt.run.name, error, exc_info=True)
        if error.errno in FULL:
            return Failure.of(attempt.disk.full())
        return Failure("worker_error", f"The worker hit a system error: {error}", retryable=True)
    except OperationalError as error:
        log.warning("run %s: %s", attempt.run.name, error)
        if database_is_full(error):
            return Failure.of(no_space_for_rows())
        return Failure("database_unavailable", "The worker lost the database.", retryable=True)
    except Exception as error:
        log.exception("run %s", attempt.run.name)
        detail = f"The worker hit {type(error).__name__}; its log has the traceback."
        return Failure("internal_error", detail, retryable=True)
