"""The states of runs and pipelines, apart from what changes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

RunState = Literal["pending", "queued", "running", "succeeded", "failed", "cancelled", "skipped", "paused"]
PipelineState = Literal["queued", "running", "succeeded", "failed", "cancelled", "paused"]

ENDED: frozenset[str] = frozenset({"succeeded", "failed", "cancelled", "skipped"})
# Runs that depend on such a run continue.
DONE: frozenset[str] = frozenset({"succeeded", "skipped"})


def state_of(counts: Mapping[str, int]) -> PipelineState:
    """The state of a pipeline, from the number of its runs in each state: running while any is under way, paused
    while one is paused and no other is running or queued, then the worst of their ends. A run that was skipped is not
    missing."""
    if counts.get("paused") and not counts.get("running") and not counts.get("queued"):
        return "paused"
    active = sum(counts.get(state, 0) for state in ("pending", "queued", "running", "paused"))
    if active:
        begun = counts.get("running", 0) + counts.get("paused", 0) + sum(counts.get(state, 0) for state in ENDED)
        return "running" if begun else "queued"
    if counts.get("failed"):
        return "failed"
    return "cancelled" if counts.get("cancelled") else "succeeded"
