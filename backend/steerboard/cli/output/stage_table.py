"""What the stages of a pipeline took, on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from steerboard.cli.output.listing import Column, print_table
from steerboard_contracts.report.pipeline import StageRow


def print_stages(console: Console, stages: Sequence[StageRow]) -> None:
    """What every stage took."""
    styles = {"succeeded": "green", "failed": "red", "cancelled": "yellow", "skipped": "dim", "paused": "yellow"}
    columns = (
        Column("stage"),
        Column("state", styles=styles),
        Column("seconds", right=True, drop=1),
        Column("device-seconds", right=True, drop=2),
    )
    rows = [
        (stage.name, "reused" if stage.reused else stage.status, f"{stage.seconds:.1f}", f"{stage.device_seconds:.1f}")
        for stage in stages
    ]
    print_table(console, columns, rows, heading=True)
