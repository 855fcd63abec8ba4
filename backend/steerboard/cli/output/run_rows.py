"""Runs as rows, and the name by which every command takes one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from steerboard.cli.output.console import console
from steerboard.cli.output.listing import Column, print_table
from steerboard.cli.output.numbers import short
from steerboard.cli.output.progress import STYLES, doing
from steerboard.cli.output.watch import with_seconds
from steerboard_contracts.wording import listed

_COLUMNS = (
    Column("run"),
    Column("kind", drop=3),
    Column("state", styles=STYLES),
    Column("time", lambda seconds: f"{seconds:,.0f} s", drop=5, right=True),
    Column("device-s", lambda seconds: f"{seconds:.1f}", drop=4, right=True),
    Column("id", drop=1, id=True),
    Column("", drop=2, words=True),
)
# Stages that a line names.
_NAMED = 4


def run_name(run: dict[str, Any]) -> str:
    """`demo-1.mle`, and for a run of its own `generate-1`."""
    return f"{run['pipeline']['name']}.{run['name']}" if run["pipeline"] else str(run["name"])


def device_time(spent: dict[str, Any]) -> float:
    """The device-seconds of a run or a pipeline, of failed attempts too, as the dashboard shows and `--where` counts
    them."""
    return float(spent["device_seconds"] + spent["failed_device_seconds"])


def print_runs(
    out: Console,
    runs: Sequence[dict[str, Any]],
    pipeline: dict[str, Any] | None = None,
    *,
    columns: Sequence[str] = (),
) -> None:
    """`pipeline`: of all the runs; its totals are the last row. `columns`: further ones, by the runs' `values`."""
    rows: list[tuple[Any, ...]] = [
        (
            run_name(run),
            run["method"] or run["kind"],
            run["state"],
            with_seconds(run)["seconds"],
            device_time(run),
            run["id"],
            *(run["values"][name] for name in columns),
            _words(run),
        )
        for run in runs
    ]
    if pipeline is not None:
        rows.append(_total(pipeline))
    further = [Column(name, _shown, right=True) for name in columns]
    print_table(out, [*_COLUMNS[:-1], *further, _COLUMNS[-1]], rows)


def _shown(value: Any) -> str:
    return short(value) if isinstance(value, int | float) else str(value)


def _total(pipeline: dict[str, Any]) -> tuple[Any, ...]:
    seconds, failed = with_seconds(pipeline)["seconds"], pipeline["failed_device_seconds"]
    lost = f"{failed:.0f} of these device-seconds in failed attempts" if failed >= 0.5 else ""
    totals = (pipeline["state"], seconds, device_time(pipeline), pipeline["id"], lost)
    return (pipeline["name"], "pipeline", *totals)


def print_warnings(run: dict[str, Any], prefix: str = "", out: Console | None = None) -> None:
    """What the owner of a run must know, though it works."""
    out = out or console()
    for warning in run["warnings"]:
        style = "red" if warning["level"] == "serious" else "yellow"
        out.print(Text(f"Warning: {prefix}{warning['message']}", style=style))


def print_stage_warnings(stages: Sequence[dict[str, Any]], out: Console | None = None) -> None:
    """The same of a recipe's stages, one of many equal ones once."""
    stages_of: dict[tuple[str, str], list[str]] = {}
    for stage in stages:
        for warning in stage["warnings"]:
            stages_of.setdefault((warning["level"], warning["message"]), []).append(stage["name"])
    for (level, message), names in stages_of.items():
        print_warnings({"warnings": [{"level": level, "message": message}]}, f"{some_of(names)}: ", out)


def some_of(names: Sequence[str]) -> str:
    """The first ones, and how many more there are."""
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return listed([*names[:_NAMED], *more])


def _words(run: dict[str, Any]) -> str:
    return doing(run) if run["state"] == "running" else str(run["reason"])
