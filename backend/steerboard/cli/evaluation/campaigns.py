"""`steerboard evaluations rank`, `rankings` and `corrections`: where people annotate an evaluation's answers blind, a
file of what they submitted, and a dataset of what they rewrote."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from steerboard.cli.client import ApiError, Client, path_of
from steerboard.cli.evaluation.documents import read_document
from steerboard.cli.evaluation.files import Name
from steerboard.cli.output.console import JsonOption, print_json, tell
from steerboard_contracts.errors import BadInput

app = typer.Typer()

_QUESTIONS = "docs/evaluation.md has an example."

Out = dict[str, Any]


@app.command()
def rank(
    evaluation: Name,
    entrant: Annotated[
        list[str] | None, typer.Option(help="Ask about this entrant; may be repeated, at most 8. [default: the best]")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Number of prompts to ask about, drawn at random.")] = None,
    instructions: Annotated[str, typer.Option(help="What annotators should look at.")] = "",
    task: Annotated[
        Literal["ranking", "pairwise", "correction"] | None,
        typer.Option(help="What to ask: an order, a choice between two, or a rewritten answer. [default: ranking]"),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(help="YAML or JSON list of questions that annotators answer about each item, next to the task."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Print the address where people rank the answers blind, in the newest open campaign or a new one.

    With --entrant, --limit, --instructions, --task or --questions, it is always a new one.
    """
    client = Client()
    new = entrant or limit or instructions or task or questions
    campaign = None if new else newest_open(client, evaluation)
    if campaign is None:
        fields = {"entrants": entrant, "limit": limit, "instructions": instructions, "task_type": task or "ranking"}
        if questions is not None:
            fields["questions"] = _questions(questions)
        campaign = create(client, evaluation, **fields)
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


@app.command()
def rankings(
    evaluation: Name,
    campaign: Annotated[str, typer.Argument(help="Name or id of the campaign.")],
    file: Annotated[Path, typer.Argument(help="File to write, as JSON lines.")],
    json: JsonOption = False,
) -> None:
    """Write every submission of a campaign: ranks, scores or corrections, replies, comments and flags."""
    part = ("campaigns", campaign, "rankings", "export")
    size = Client().download(path_of("evaluations", evaluation, *part), file)
    tell(f"{file}: {size:,} bytes", {"file": str(file), "bytes": size}, json=json)


@app.command()
def corrections(
    evaluation: Name,
    campaign: Annotated[str, typer.Argument(help="A campaign whose task is correction.")],
    edited_only: Annotated[
        bool, typer.Option("--edited-only", help="Leave out answers that an annotator accepted as they are.")
    ] = False,
    train_all: Annotated[
        bool, typer.Option("--train-all", help="Train on held-out prompts, too; evaluations then report it.")
    ] = False,
    name: Annotated[str | None, typer.Option(help="Dataset name; a version is appended: NAME-1, NAME-2.")] = None,
    json: JsonOption = False,
) -> None:
    """Make a dataset of instructions from the answers that people corrected, to fine-tune on."""
    body = {"unchanged": not edited_only, "split": "train" if train_all else "by_prompt", "name": name}
    made: Out = Client(timeout=600.0).post(
        path_of("evaluations", evaluation, "campaigns", campaign, "corrections"), body
    )
    if json:
        print_json(made)
        return
    print(f"Made {made['name']}: {made['rows']:,} rows ({made['held_out_rows']:,} held out)")
    for reason, count in made["origin"]["left_out"].items():
        print(f"  {count:,} left out: {reason}")


def _questions(path: Path) -> list[Any]:
    """Raises `BadInput` for a file without a list."""
    document = read_document(path, _QUESTIONS)
    if not isinstance(document, list):
        raise BadInput(f"{path} has no list of questions", hint=_QUESTIONS)
    return document


def create(client: Client, evaluation: str, **fields: Any) -> Out:
    """Ask people about the answers, with the fields of `CampaignCreate`. Raises `ApiError`."""
    made: Out = client.post(path_of("evaluations", evaluation, "campaigns"), fields)
    return made


def newest_open(client: Client, evaluation: str) -> Out | None:
    campaigns: list[Out] = client.get(path_of("evaluations", evaluation, "campaigns"))["items"]
    return next((campaign for campaign in reversed(campaigns) if campaign["state"] == "open"), None)


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
