"""`steerboard links`: read-only links to frozen pages, which expire: comparisons of runs, answers and reports."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from steerboard.cli.client import Client, path_of
from steerboard.cli.output.console import JsonOption, console, note, print_json, tell
from steerboard.cli.output.listing import Column, moment, print_table

app = typer.Typer(no_args_is_help=True, help="Share comparisons with people who have no account, and revoke links.")

Out = dict[str, Any]

_COLUMNS = (
    Column("link"),
    Column("shows"),
    Column("title", words=True),
    Column("created by", drop=1),
    Column("created", moment, drop=2),
    Column("expires", moment),
)
_KEYS = ("id", "kind", "title", "created_by", "created_at", "expires_at")


@app.command("list")
def list_(
    kind: Annotated[
        Literal["report", "runs", "answers"] | None, typer.Option(help="Only links that show this.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List active links, newest first. Their addresses are not stored."""
    shared: list[Out] = Client().get("share-links", kind=kind)
    if json:
        print_json(shared)
    elif shared:
        print_table(console(), _COLUMNS, [tuple(link[key] for key in _KEYS) for link in shared])
    else:
        note("No links. Create one: steerboard links runs RUN RUN")


@app.command()
def runs(
    compared: Annotated[list[str], typer.Argument(metavar="RUN...", help="PIPELINE.STAGE, ids or the ends of ids.")],
    metric: Annotated[
        list[str], typer.Option(help="A metric to chart; may be repeated. [default: the most important]")
    ] = [],  # noqa: B006
    days: Annotated[int, typer.Option(min=1, max=365, help="Expires after this many days.")] = 7,
    json: JsonOption = False,
) -> None:
    """Freeze a comparison of runs and create a link with which anyone can read it. It is printed only once."""
    client = Client()
    body = {"runs": compared, "metrics": metric, "expires_in_days": days}
    made: Out = client.post("share-links/runs", body)
    address = f"{client.url}{made.pop('path')}"
    if json:
        print_json({**made, "address": address})
        return
    print(address)
    note(f"Anyone with the link can read the comparison until {moment(made['expires_at'])}.")
    note(f"To revoke it earlier: steerboard links revoke {made['id']}")


@app.command()
def revoke(
    link: Annotated[str, typer.Argument(help="Id of the link, as printed by `links list`.")], json: JsonOption = False
) -> None:
    """Revoke a link; it stops working immediately."""
    Client().delete(path_of("share-links", link))
    tell(f"Revoked link {link}", {"revoked": link}, json=json)
