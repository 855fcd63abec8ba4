"""`steerboard methods`: the training methods that the server knows, and what it left out."""

from __future__ import annotations

import typer

from steerboard.cli.client import Client
from steerboard.cli.output.console import JsonOption, console, note, print_json
from steerboard.cli.output.listing import Column, print_table

commands = typer.Typer()

_COLUMNS = (
    Column("method"),
    Column("title", words=True, drop=2),
    Column("makes", drop=3),
    Column("source", words=True, drop=1),
    Column("package", drop=4),
)


@commands.command("methods")
def list_methods(json: JsonOption = False) -> None:
    """List the training methods, including those of other packages."""
    document = Client().get("/api/v1/system/methods")
    if json:
        print_json(document)
        return
    rows = [
        (
            method["name"],
            method["title"],
            ", ".join(method["outputs"]),
            method["source"],
            f"{method['package']} {method['version']}" if method["package"] else "",
        )
        for method in document["methods"]
    ]
    print_table(console(), _COLUMNS, rows)
    for fault in document["left_out"]:
        note(f"left out: {fault['name']} of {fault['package']}: {fault['detail']}")
