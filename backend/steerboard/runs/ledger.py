"""What runs cost, by phase: read from their attempts."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.runs.tables import Run, RunAttempt
from steerboard_contracts.watching.ledger import Ledger, Phase, PhaseCost, PhaseTime, add_up, in_order

# Outcomes of attempts whose work the run uses: the active one, the one that ended it, and those before a pause.
_USED = (None, "succeeded", "paused")


def recorded(phases: Mapping[Phase, PhaseTime], devices: int) -> dict[str, Any]:
    """What a stage has measured so far, as an attempt's row keeps it."""
    return {name: {"device_seconds": devices * phase.seconds, "tokens": phase.tokens} for name, phase in phases.items()}


def measured_seconds(attempt: RunAttempt) -> float:
    """Device-seconds of all phases that were written down before the attempt ended."""
    return sum(float(phase["device_seconds"]) for phase in (attempt.phases or {}).values())


def phases_of(attempt: RunAttempt) -> list[PhaseCost]:
    """They add up to the attempt's device-seconds once it has ended: what no phase took was `idle`."""
    if attempt.phases is None:
        return in_order([PhaseCost(phase="unrecorded", device_seconds=attempt.device_seconds)])
    phases = [PhaseCost(phase=name, **phase) for name, phase in attempt.phases.items()]
    idle = attempt.device_seconds - measured_seconds(attempt) if attempt.outcome else 0.0
    return in_order([*phases, PhaseCost(phase="idle", device_seconds=max(0.0, idle))])


def ledgers(session: Session, runs: Sequence[Run]) -> dict[uuid.UUID, Ledger]:
    """Ledgers by id. A run with shards or parts costs what these do; a reused one what the equal run did."""
    worked = {run.reused_from_id or run.id for run in runs}
    parents: dict[uuid.UUID, uuid.UUID] = {id_: id_ for id_ in worked}
    for id_, parent in session.execute(select(Run.id, Run.parent_id).where(Run.parent_id.in_(worked))):
        parents[id_] = parent or id_
    attempts: dict[uuid.UUID, list[RunAttempt]] = defaultdict(list)
    with_parts = {parent for id_, parent in parents.items() if parent != id_}
    for attempt in session.scalars(select(RunAttempt).where(RunAttempt.run_id.in_(parents))):
        # The attempt that gathers shards carries the sum of their cost.
        if not (attempt.run_id in with_parts and attempt.outcome == "succeeded"):
            attempts[parents[attempt.run_id]].append(attempt)
    return {run.id: _ledger(run, attempts[run.reused_from_id or run.id]) for run in runs}


def ledger_of(session: Session, run: Run) -> Ledger:
    return ledgers(session, [run])[run.id]


def summed(session: Session, runs: Sequence[Run]) -> Ledger:
    """The ledger of all of `runs` together, such as the stages of a pipeline. The work of a run counts once, however
    many of them reused it."""
    seen: set[uuid.UUID] = set()
    parts: list[Ledger] = []
    by_run = ledgers(session, runs)
    # Runs that did their own work come first: what a stage of the same pipeline took over was paid for here.
    for run in sorted(runs, key=lambda run: run.reused_from_id is not None):
        worked = run.reused_from_id or run.id
        ledger = by_run[run.id]
        parts.append(Ledger(reused=ledger.reused) if worked in seen else ledger)
        seen.add(worked)
    return add_up(parts)


def _ledger(run: Run, attempts: Sequence[RunAttempt]) -> Ledger:
    counted = [attempt for attempt in attempts if attempt.outcome in _USED]
    failed = [attempt for attempt in attempts if attempt.outcome not in _USED]
    ledger = add_up(Ledger(phases=phases_of(attempt)) for attempt in counted)
    ledger.device_seconds = sum(cost.device_seconds for cost in ledger.phases)
    if run.reused_from_id is not None:
        # What failed on the way belongs to the run that did the work.
        ledger.reused, ledger.reused_device_seconds = [run.name], ledger.device_seconds
        return ledger
    ledger.failed_device_seconds = sum(attempt.device_seconds for attempt in failed)
    ledger.failed_attempts = len(failed)
    return ledger
