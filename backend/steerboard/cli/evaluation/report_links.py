"""`steerboard evaluations share`: links with which anyone reads a report, without an account."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from steerboard.cli.client import Client, path_of
from steerboard.cli.evaluation.files import Name
from steerboard.cli.output.console import JsonOption, console, note, print_json, tell
from steerboard.cli.output.listing import Column, moment, print_table

app = typer.Typer()

Out = dict[str, Any]

_COLUMNS = (Column("link"), Column("created by", drop=1), Column("created", moment, drop=2), Column("expires", moment))
_KEYS = ("id", "created_by", "created_at", "expires_at")


@app.command()
def share(
    evaluation: Name,
    days: Annotated[int, typer.Option(min=1, max=365, help="Expires after this many days.")] = 7,
    json: JsonOption = False,
) -> None:
    """Create a link with which anyone can read the report. It is printed only once."""
    client = Client()
    made: Out = client.post(path_of("evaluations", evaluation, "report-links"), {"expires_in_days": days})
    address = f"{client.url}{made.pop('path')}"
    if json:
        print_json({**made, "address": address})
        return
    print(address)
    note(f"Anyone with the link can read the report until {moment(made['expires_at'])}.")
    note(f"To revoke it earlier: steerboard evaluations revoke {shlex.quote(evaluation)} {made['id']}")


@app.command()
def links(evaluation: Name, json: JsonOption = False) -> None:
    """List active links, newest first. Their addresses are not stored."""
    shared: list[Out] = Client().get(path_of("evaluations", evaluation, "report-links"))
    if json:
        print_json(shared)
    elif shared:
        print_table(console(), _COLUMNS, [tuple(link[key] for key in _KEYS) for link in shared])
    else:
        note("No links. Create one: steerboard evaluations share EVALUATION")


@app.command()
def revoke(
    evaluation: Name,
    link: Annotated[str, typer.Argument(help="Id of the link, as printed by `links`.")],
    json: JsonOption = False,
) -> None:
    """Revoke a link; it stops working immediately."""
    Client().delete(path_of("evaluations", evaluation, "report-links", link))
    tell(f"Revoked link {link} of {evaluation}", {"revoked": link}, json=json)
