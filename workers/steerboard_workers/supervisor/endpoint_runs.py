"""Runs that ask an endpoint, of judges and of models elsewhere: a process with the database instead of a stage.

A judge keeps every answer itself; a model's are written to files, as a stage's are. Either is guarded, heard and
ended as a stage is, but gets the address of the database and the key to its secrets. The harness of an academic run is
a process below it that gets none of this.
"""

from __future__ import annotations

import sys
from pathlib import Path

from steerboard.platform.settings import Settings
from steerboard.runs.state.claims import Claim
from steerboard.runs.tables import Run
from steerboard_contracts.run_kinds import any_kind_of


def judges(run: Run) -> bool:
    """Whether it is of a judge, which reads what it needs from the database: no stage is prepared."""
    return _asks(run) == "always"


def asks_elsewhere(run: Run) -> bool:
    """Whether the work of a run is to ask an endpoint."""
    return judges(run) or (_asks(run) == "named" and run.config.get("endpoint") is not None)


def command(claim: Claim, run: Run) -> list[str]:
    """Ids and nothing else: anyone on the machine can read it."""
    module = "steerboard.evaluation.judges.process" if judges(run) else "steerboard.evaluation.entrants.process"
    return [sys.executable, "-m", module, str(claim.run_id), str(claim.attempt)]


def variables(settings: Settings, python: Path | None = None) -> dict[str, str]:
    """The variables of its environment: the worker's own settings, as far as it needs them. `python`: that of the
    harness."""
    given = {
        "STEERBOARD_HOME": str(settings.home),
        "STEERBOARD_DATABASE_URL": settings.database_url,
        "STEERBOARD_SECRET_KEY": settings.secret_key.get_secret_value(),
        "STEERBOARD_ALLOWED_PRIVATE": settings.allowed_private,
        "STEERBOARD_LEASE_SECONDS": str(settings.lease_seconds),
        "STEERBOARD_BENCHMARKS_PYTHON": str(python or ""),
    }
    return {name: value for name, value in given.items() if value}


def _asks(run: Run) -> str | None:
    kind = any_kind_of(run.kind, run.method)
    return kind.asks_endpoint if kind is not None else None
