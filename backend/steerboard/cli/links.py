"""`steerboard links`: read-only links to frozen pages, which expire: comparisons of runs, answers and reports."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from steerboard.cli.client import Client, path_of
from steerboard.cli.output.console import JsonOption, tell
from steerboard.cli.output.share_links import print_links, print_new_link

app = typer.Typer(no_args_is_help=True, help="Share comparisons with people who have no account, and revoke links.")


@app.command("list")
def list_(
    kind: Annotated[
        Literal["report", "runs", "answers"] | None, typer.Option(help="Only links that show this.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List active links, newest first. Their addresses are not stored."""
    print_links(Client().get("share-links", kind=kind), "steerboard links runs RUN RUN", json=json)


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
    made = client.post("share-links/runs", body)
    print_new_link(client, made, "the comparison", "steerboard links revoke", json=json)


@app.command()
def revoke(
    link: Annotated[str, typer.Argument(help="Id of the link, as printed by `links list`.")], json: JsonOption = False
) -> None:
    """Revoke a link; it stops working immediately."""
    Client().delete(path_of("share-links", link))
    tell(f"Revoked link {link}", {"revoked": link}, json=json)
