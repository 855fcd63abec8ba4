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
    """One entrant: every run in its lineage once, and of best-of-n the sampling and choosing. `shared` are those of
    them that entrants of other models have in theirs. Their `shared_device_seconds` are part of the ledger, as are
    those of reference log-probs that another run had computed."""

    entrant: str
    ledger: Ledger
    runs: int
    shared: list[SharedRun] = []
    shared_device_seconds: float = 0.0
