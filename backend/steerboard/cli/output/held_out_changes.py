"""A line about held-out rows that people changed."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from rich.console import Console

from steerboard.cli.output.listing import plain
from steerboard_contracts.held_out_changes import HeldOutChange, in_words

_CHANGES = TypeAdapter(list[HeldOutChange])


def print_held_out_changes(document: dict[str, Any], out: Console) -> None:
    """The changes of a dataset, or of the data of a run."""
    if words := in_words(_CHANGES.validate_python(document["held_out_changes"])):
        out.print(plain(f"held-out rows were changed by people: {words}"), style="yellow")
