"""`steerboard runs import`: the metrics of a run that another trainer made."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steerboard.cli.client import Client
from steerboard.cli.output.console import JsonOption, note, tell
from steerboard_contracts.errors import BadInput

_PATIENT = 600.0


def import_history(
    file: Annotated[Path, typer.Argument(help="trainer_state.json, or a table with a row for each step.")],
    name: Annotated[str | None, typer.Option(help="Name of the run. [default: history-N]")] = None,
    json: JsonOption = False,
) -> None:
    """Import the metrics of a run that another trainer made, to compare with: trainer_state.json of transformers and
    TRL, or a CSV, JSONL, JSON or Parquet export of W&B, Trackio and others."""
    try:
        content = file.open("rb")
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}", code="no_such_file") from None
    with content:
        form = {} if name is None else {"name": name}
        imported = Client().post("runs/histories", files={"file": (file.name, content)}, data=form, timeout=_PATIENT)
    run, left_out = imported["run"], imported["not_finite"]
    if left_out:
        note(f"{left_out} values are not finite numbers and are left out")
    tell(f"Imported {len(run['summary'])} metrics as run {run['name']}  {run['id']}", imported, json=json)
