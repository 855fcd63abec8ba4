"""What it took to make each entrant: the ledger of all runs in its lineage."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.evaluation.report.loading.lineage import Lineage, upstream
from steerboard.evaluation.tables import Entrant, Evaluation
from steerboard.runs.ledger import ledgers
from steerboard.runs.tables import Run
from steerboard_contracts.report.sections.costs import EntrantCost, SharedRun
from steerboard_contracts.watching.ledger import Ledger, PhaseCost, add_up


def entrant_costs(session: Session, evaluation: Evaluation) -> list[EntrantCost]:
    """The costs of the entrants that are models of the registry, in their order. What others cost is not known here."""
    entrants = session.scalars(
        select(Entrant)
        .where(Entrant.evaluation_id == evaluation.id, Entrant.model_id.is_not(None))
        .order_by(Entrant.position, Entrant.id)
    ).all()
    if not entrants:
        return []
    starts = {entrant.id: _made_of(entrant) for entrant in entrants}
    lineage = upstream(session, set().union(*starts.values()))
    above = {id_: lineage.above(start) for id_, start in starts.items()}
    runs = {run.id: run for run in session.scalars(select(Run).where(Run.id.in_(set().union(*above.values()))))}
    costs = ledgers(session, list(runs.values()))
    # A reused run is the run that did its work: an entrant's own and another's are one.
    worked = {run.id: run.reused_from_id or run.id for run in runs.values()}
    behind = {
        id_: {worked[thing]: runs[thing] for thing in sorted(things & runs.keys())} for id_, things in above.items()
    }
    # One model that is asked for several scores counts once: these entrants are not different models.
    different = {frozenset(starts[id_]): own for id_, own in behind.items()}
    uses = Counter(thing for own in different.values() for thing in own)
    own = {entrant.id: _own_run(entrant, lineage) for entrant in entrants}
    return [_cost(entrant.name, behind[entrant.id], own[entrant.id], costs, uses) for entrant in entrants]


def _made_of(entrant: Entrant) -> set[uuid.UUID]:
    """Its model; and where the best of several answers was chosen, the run that did that."""
    return {made for made in (entrant.model_id, entrant.run_id if entrant.best_of is not None else None) if made}


def _own_run(entrant: Entrant, lineage: Lineage) -> uuid.UUID | None:
    """The run that made its model; where the best of several answers was chosen, the run that did that."""
    if entrant.best_of is not None:
        return entrant.run_id
    model = lineage.models.get(entrant.model_id) if entrant.model_id is not None else None
    return model.run_id if model is not None else None


def _cost(
    name: str,
    behind: Mapping[uuid.UUID, Run],
    own: uuid.UUID | None,
    costs: Mapping[uuid.UUID, Ledger],
    uses: Mapping[uuid.UUID, int],
) -> EntrantCost:
    shared = [run for worked, run in behind.items() if uses[worked] > 1]
    taken = _log_probs_taken(list(behind.values()))
    ledger = add_up([*(costs[run.id] for run in behind.values()), taken])
    return EntrantCost(
        entrant=name,
        own_device_seconds=costs[own].device_seconds if own is not None and own in costs else None,
        ledger=ledger,
        runs=len(behind),
        shared=[SharedRun(name=run.name, kind=run.kind, device_seconds=costs[run.id].device_seconds) for run in shared],
        warnings=[f"run {run.name}: {warning['message']}" for run in behind.values() for warning in run.warnings],
        shared_device_seconds=sum(costs[run.id].device_seconds for run in shared) + taken.device_seconds,
    )


def _log_probs_taken(runs: Sequence[Run]) -> Ledger:
    """Log-probs of frozen models that others had computed on the same data: this one needs them as much."""
    seconds = sum(float((run.summary or {}).get("log_prob_seconds_shared") or 0.0) for run in runs)
    return Ledger(phases=[PhaseCost(phase="reference", device_seconds=seconds)], device_seconds=seconds)
