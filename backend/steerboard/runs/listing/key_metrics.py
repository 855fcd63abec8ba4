"""The key metric of a run: the first of those that its method names as important and that the run has logged."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.runs.facts.tables import RunFact
from steerboard.runs.listing.schemas import KeyMetric
from steerboard.runs.tables import Run
from steerboard_contracts.methods import method_of
from steerboard_contracts.metric_order import FIRST_METRICS


def key_metrics(session: Session, runs: Sequence[Run]) -> dict[uuid.UUID, KeyMetric]:
    """The key metrics and their latest values, by the id of the run; runs that have logged none are left out."""
    wanted = {run.id: _first(run) for run in runs}
    names = {name for first in wanted.values() for name in first}
    facts = session.execute(
        select(RunFact.run_id, RunFact.key, RunFact.number).where(
            RunFact.run_id.in_(wanted), RunFact.source == "metric", RunFact.key.in_(names)
        )
    )
    logged: dict[uuid.UUID, dict[str, float]] = {}
    for run, name, value in facts:
        if value is not None:
            logged.setdefault(run, {})[name] = value
    found = {}
    for run, values in logged.items():
        # The names of all methods were asked for, so a run may have none of its own.
        key = next((one for one in wanted[run] if one in values), None)
        if key is not None:
            found[run] = KeyMetric(name=key, value=values[key])
    return found


def _first(run: Run) -> Sequence[str]:
    method = method_of(run.method)
    return method.first_metrics if method is not None else FIRST_METRICS
