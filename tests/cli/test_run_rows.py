"""The table of runs on a terminal."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from steerboard.cli.output.run_rows import print_runs

SPENT: dict[str, Any] = {
    "state": "failed",
    "started_at": None,
    "ended_at": None,
    "device_seconds": 20.0,
    "failed_device_seconds": 5.0,
    "id": "0198",
    "paused_seconds": 0.0,
    "paused_since": None,
    "created_at": "2026-01-01T00:00:00Z",
}


def test_the_device_time_of_a_run_and_its_pipeline_counts_failed_attempts_as_the_dashboard_does() -> None:
    run = {
        **SPENT,
        **dict.fromkeys(("method", "pipeline", "reason_code", "waits_for", "queue_position", "reason", "progress")),
        "kind": "train",
        "name": "train-1",
        "values": {},
        "warnings": [],
        "findings": [],
        "reused_from": None,
    }
    out = io.StringIO()
    print_runs(Console(file=out, width=200, color_system=None), [run], {**SPENT, "name": "demo-1"})
    lines = out.getvalue().splitlines()
    (single,) = [line for line in lines if "train-1" in line]
    (whole,) = [line for line in lines if "demo-1" in line]
    assert "25.0" in single.split()
    assert "25.0" in whole.split()
    assert "5 of these device-seconds in failed attempts" in whole
