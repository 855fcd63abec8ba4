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
    days: Annotated[int, typer.Option(min=1, max=365, help="Number of days it is valid.")] = 7,
    json: JsonOption = False,
) -> None:
    """Print a link with which anyone reads the report. It is not shown again."""
    client = Client()
    made: Out = client.post(path_of("evaluations", evaluation, "report-links"), {"expires_in_days": days})
    address = f"{client.url}{made.pop('path')}"
    if json:
        print_json({**made, "address": address})
        return
    print(address)
    note(f"For everyone who has it, until {moment(made['expires_at'])}.")
    note(f"To end that earlier: steerboard evaluations revoke {shlex.quote(evaluation)} {made['id']}")


@app.command()
def links(evaluation: Name, json: JsonOption = False) -> None:
    """List the links that work, newest first. Their addresses are not kept."""
    found: list[Out] = Client().get(path_of("evaluations", evaluation, "report-links"))
    if json:
        print_json(found)
    elif found:
        print_table(console(), _COLUMNS, [tuple(one[key] for key in _KEYS) for one in found])
    else:
        note("No links. Make one: evaluations share EVALUATION")


@app.command()
def revoke(
    evaluation: Name,
    link: Annotated[str, typer.Argument(help="Id of the link, as printed by `links`.")],
    json: JsonOption = False,
) -> None:
    """Revoke a link: it stops working immediately."""
    Client().delete(path_of("evaluations", evaluation, "report-links", link))
    tell(f"Revoked link {link} of {evaluation}", {"revoked": link}, json=json)
