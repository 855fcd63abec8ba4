"""`steerboard evaluations rank`: the page on which people rank an evaluation's answers blind."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from steerboard.cli.client import ApiError, Client, path_of
from steerboard.cli.evaluation.files import Name
from steerboard.cli.output.console import JsonOption, print_json

app = typer.Typer()

Out = dict[str, Any]


@app.command()
def rank(
    evaluation: Name,
    entrant: Annotated[
        list[str] | None, typer.Option(help="Ask about this entrant; may be repeated, at most 8. [default: all]")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask about this many prompts, drawn at random.")] = None,
    instructions: Annotated[str, typer.Option(help="What annotators should look at.")] = "",
    json: JsonOption = False,
) -> None:
    """Print the address at which people rank its answers blind: of the newest open campaign, or of a new one.

    With an option it is always a new one.
    """
    client = Client()
    campaign = None if entrant or limit or instructions else newest_open(client, evaluation)
    if campaign is None:
        campaign = create(client, evaluation, entrants=entrant, limit=limit, instructions=instructions)
    page = page_of(client, campaign)
    if json:
        print_json({"campaign": campaign, "address": client.url + page})
        return
    print(f"{campaign['name']}: {len(campaign['entrants'])} answers to each of {campaign['items']} prompts", end="")
    print(f", {campaign['done_items']} done")
    print(f"Rank them at {client.url}{page}")
    link = signed_in(client, page)
    if link is not None:
        print(f"Signed in once:  {link}")


def create(client: Client, evaluation: str, *, entrants: list[str] | None, limit: int | None, instructions: str) -> Out:
    """Ask people to rank the answers of `entrants`, all where it is None. Raises `ApiError`."""
    body = {"entrants": entrants, "limit": limit, "instructions": instructions}
    made: Out = client.post(path_of("evaluations", evaluation, "campaigns"), body)
    return made


def newest_open(client: Client, evaluation: str) -> Out | None:
    found: list[Out] = client.get(path_of("evaluations", evaluation, "campaigns"))["items"]
    return next((one for one in reversed(found) if one["state"] == "open"), None)


def page_of(client: Client, campaign: Out) -> str:
    """The path of the dashboard's page on which it is ranked."""
    return f"/p/{path_of(client.project)}/rank/{campaign['id']}"


def signed_in(client: Client, page: str) -> str | None:
    """A link that signs the caller in once and leads to the page; None for a token that may not make one."""
    try:
        return f"{client.url}{client.post('/api/v1/sign-in-links')['path']}?back={page}"
    except ApiError as error:
        if error.status == 403:
            return None
        raise
