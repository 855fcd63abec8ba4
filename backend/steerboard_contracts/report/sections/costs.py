"""What it took to make the entrants of an evaluation."""

from __future__ import annotations

from pydantic import BaseModel

from steerboard_contracts.watching.ledger import Ledger


class SharedRun(BaseModel):
    """A run that is in the lineage of several entrants, such as the scoring of labelled data."""

    name: str
    kind: str
    device_seconds: float


class EntrantCost(BaseModel):
    """What it takes to make one entrant, in attempts that the runs use.

    `own_device_seconds`: of the run that made its model, or for best-of-n of the sampling and choosing; null where no
    run here did. `ledger`: of all that it needs, every run in its lineage once, such as SFT, the reward model, sampling
    and labelling; known where `runs` is above 0. `shared` are those of them that entrants of other models have in
    theirs. Their `shared_device_seconds` are part of the ledger, as are those of reference log-probs that another run
    had computed. `warnings`: of these runs, with their names."""

    entrant: str
    own_device_seconds: float | None = None
    ledger: Ledger
    runs: int
    shared: list[SharedRun] = []
    warnings: list[str] = []
    shared_device_seconds: float = 0.0


def cost_cells(cost: EntrantCost) -> tuple[str, str, str, str, str]:
    """Entrant, device-seconds of its own run, of all that it needs, what of it is shared, and the shared runs."""
    known = cost.runs > 0
    return (
        cost.entrant,
        "unknown" if cost.own_device_seconds is None else f"{cost.own_device_seconds:.1f}",
        f"{cost.ledger.device_seconds:.1f}" if known else "unknown",
        f"{cost.shared_device_seconds:.1f}" if known else "unknown",
        ", ".join(run.name for run in cost.shared),
    )
