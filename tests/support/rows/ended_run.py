"""A run of a project that has ended, as a row for tests that need no more of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from steerboard.runs.tables import Run


def ended_run(project_id: UUID, **given: Any) -> Run:
    """`given`: name, kind, config, state and reason at least."""
    common: dict[str, Any] = {"pool": "default", "priority": 0, "attempt": 1, "max_attempts": 1, "reuse": False}
    used = {"device_seconds": 0.0, "failed_device_seconds": 0.0, "created_by": "tester"}
    return Run(project_id=project_id, **common | used | given)
