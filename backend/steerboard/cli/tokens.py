"""`steerboard tokens`: bearer tokens for scripts and CI."""

from __future__ import annotations

from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.table import Table

from steerboard.cli.client import Client

app = typer.Typer(no_args_is_help=True, help="Bearer tokens for scripts and CI.")

AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]


@app.command("create")
def create(
    name: str,
    scope: Annotated[
        list[str] | None, typer.Option(help="read (the default), write, run, admin; again for more.")
    ] = None,
    days: Annotated[float | None, typer.Option(help="Ends after so many days.")] = None,
    json: AsJson = False,
) -> None:
    """Make a token and print it, this once."""
    made = Client().post("tokens", {"name": name, "scopes": scope or ["read"], "expires_in_days": days})
    typer.echo(orjson.dumps(made, option=orjson.OPT_INDENT_2).decode() if json else made["token"])


@app.command("list")
def list_tokens(json: AsJson = False) -> None:
    """All tokens of the project; never the secrets."""
    tokens = list(Client().pages("tokens"))
    if json:
        typer.echo(orjson.dumps(tokens, option=orjson.OPT_INDENT_2).decode())
        return
    table = Table("name", "starts with", "scopes", "last used", "ends", "state")
    for token in tokens:
        state = "revoked" if token["revoked_at"] else "live"
        scopes = ", ".join(token["scopes"])
        table.add_row(token["name"], token["hint"], scopes, token["last_used_at"], token["expires_at"], state)
    Console().print(table)


@app.command("revoke")
def revoke(token: Annotated[str, typer.Argument(help="Name or id.")]) -> None:
    """End a token at once."""
    revoked = Client().delete(f"tokens/{token}")
    typer.echo(f"token {revoked['name']} is revoked")
