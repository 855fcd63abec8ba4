"""`steerboard tokens`: bearer tokens for scripts and CI."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

import typer

from steerboard.cli.client import Client, path_of
from steerboard.cli.output.console import JsonOption, console, note, print_json, tell
from steerboard.cli.output.listing import Column, moment, print_table

app = typer.Typer(no_args_is_help=True, help="Bearer tokens for scripts and CI.")

_COLUMNS = (
    Column("token"),
    Column("state", styles={"revoked": "yellow", "expired": "yellow", "live": "green"}),
    Column("scopes", drop=3),
    Column("last used", moment, drop=4),
    Column("ends", moment, drop=2),
    Column("starts with", drop=5),
    Column("id", drop=1, id=True),
)


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="Name of the token; unique among live tokens.")],
    scope: Annotated[
        list[str] | None, typer.Option(help="Scope: read (the default), write, run or admin; may be repeated.")
    ] = None,
    days: Annotated[float | None, typer.Option(help="Expires after this many days.")] = None,
    json: JsonOption = False,
) -> None:
    """Create a token and print it. It is not shown again."""
    made = Client().post("tokens", {"name": name, "scopes": scope or ["read"], "expires_in_days": days})
    if json:
        print_json(made)
    else:
        typer.echo(made["token"])


@app.command("list")
def list_tokens(json: JsonOption = False) -> None:
    """List the project's tokens, without the secrets."""
    tokens = list(Client().pages("tokens"))
    if json:
        print_json(tokens)
        return
    if not tokens:
        note("No tokens yet. Create one: steerboard tokens create NAME")
        return
    keys = ("scopes", "last_used_at", "expires_at", "hint", "id")
    rows = [(token["name"], _state(token), *(token[key] for key in keys)) for token in tokens]
    print_table(console(), _COLUMNS, rows)


def _state(token: dict[str, Any]) -> str:
    if token["revoked_at"]:
        return "revoked"
    ends = token["expires_at"]
    return "expired" if ends and dt.datetime.fromisoformat(ends) <= dt.datetime.now(dt.UTC) else "live"


@app.command("revoke")
def revoke(
    token: Annotated[str, typer.Argument(help="Name, id or the end of an id.")], json: JsonOption = False
) -> None:
    """Revoke a token immediately."""
    revoked = Client().delete(path_of("tokens", token))
    tell(f"token {revoked['name']} is revoked", revoked, json=json)
