"""Share links as commands print them: a new one with its address, and those that are active."""

from __future__ import annotations

from typing import Any

from steerboard.cli.client import Client
from steerboard.cli.output.console import console, note, print_json
from steerboard.cli.output.listing import Column, moment, print_table

_COLUMNS = {
    "id": Column("link"),
    "kind": Column("shows"),
    "title": Column("title", words=True),
    "created_by": Column("created by", drop=1),
    "created_at": Column("created", moment, drop=2),
    "expires_at": Column("expires", moment),
}


def print_new_link(client: Client, made: dict[str, Any], shows: str, revoke: str, *, json: bool) -> None:
    """The address of a link, which is not stored. `shows`: what can be read with it; `revoke`: the command for that."""
    address = f"{client.url}{made.pop('path')}"
    if json:
        print_json({**made, "address": address})
        return
    print(address)
    note(f"Anyone with the link can read {shows} until {moment(made['expires_at'])}.")
    note(f"To revoke it earlier: {revoke} {made['id']}")


def print_links(links: list[dict[str, Any]], create: str, *, json: bool) -> None:
    """Active links, with the columns that they have. `create`: the command that creates one."""
    if json:
        print_json(links)
    elif links:
        keys = [key for key in _COLUMNS if key in links[0]]
        print_table(console(), [_COLUMNS[key] for key in keys], [tuple(link[key] for key in keys) for link in links])
    else:
        note(f"No links. Create one: {create}")
