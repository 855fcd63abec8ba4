"""`steerboard evaluations share`: links with which anyone reads a report, without an account."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from steerboard.cli.client import Client, path_of
from steerboard.cli.evaluation.files import Name
from steerboard.cli.output.console import JsonOption, tell
from steerboard.cli.output.share_links import print_links, print_new_link

app = typer.Typer()


@app.command()
def share(
    evaluation: Name,
    days: Annotated[int, typer.Option(min=1, max=365, help="Expires after this many days.")] = 7,
    json: JsonOption = False,
) -> None:
    """Create a link with which anyone can read the report. It is printed only once."""
    client = Client()
    made = client.post(path_of("evaluations", evaluation, "report-links"), {"expires_in_days": days})
    revoke = f"steerboard evaluations revoke {shlex.quote(evaluation)}"
    print_new_link(client, made, "the report", revoke, json=json)


@app.command()
def links(evaluation: Name, json: JsonOption = False) -> None:
    """List active links, newest first. Their addresses are not stored."""
    active = Client().get(path_of("evaluations", evaluation, "report-links"))
    print_links(active, "steerboard evaluations share EVALUATION", json=json)


@app.command()
def revoke(
    evaluation: Name,
    link: Annotated[str, typer.Argument(help="Id of the link, as printed by `links`.")],
    json: JsonOption = False,
) -> None:
    """Revoke a link; it stops working immediately."""
    Client().delete(path_of("evaluations", evaluation, "report-links", link))
    tell(f"Revoked link {link} of {evaluation}", {"revoked": link}, json=json)
