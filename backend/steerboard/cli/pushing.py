"""`steerboard models push`, `steerboard datasets push`, and `steerboard hub-token`: to a hub, and by which token."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from steerboard.cli.client import Client, path_of
from steerboard.cli.output.console import EXIT_FAILED, JsonOption, console, note, print_json, tell
from steerboard.cli.output.listing import plain
from steerboard.cli.output.watch import wait_for
from steerboard_contracts.errors import BadInput

token_app = typer.Typer(no_args_is_help=True, help="The project's token for the hub of models and datasets.")

Repo = Annotated[str, typer.Argument(metavar="ORG/NAME", help="Repository on the hub; created if it does not exist.")]
Public = Annotated[bool, typer.Option("--public", help="Create the repository as a public one.")]
Licence = Annotated[str | None, typer.Option(help="Licence in the hub's words, such as apache-2.0.")]
CardFile = Annotated[Path | None, typer.Option("--card", help="Send this README.md, and not the generated one.")]
ShowCard = Annotated[bool, typer.Option("--show-card", help="Print the card, and push nothing.")]
Pool = Annotated[str, typer.Option(help="Worker pool to run it on.")]
Wait = Annotated[bool, typer.Option(help="Wait until the push ends.")]


def push_model(
    model: Annotated[str, typer.Argument(help="Name, id or the end of an id, @production or @production-reward.")],
    repo: Repo,
    public: Public = False,
    weights: Annotated[
        Literal["merged", "adapter"], typer.Option(help="LoRA weights merged into their base, or the adapter alone.")
    ] = "merged",
    base: Annotated[
        str | None, typer.Option(help="Hub name of an adapter's base that was not imported from the hub.")
    ] = None,
    licence: Licence = None,
    card: CardFile = None,
    show_card: ShowCard = False,
    pool: Pool = "default",
    wait: Wait = True,
    json: JsonOption = False,
) -> None:
    """Push a model to a repository of the hub, with a card written from its lineage and evaluations. The repository is
    private unless asked otherwise; an equal push changes nothing."""
    options = {"repo": repo, "weights": weights, "base": base, "licence": licence}
    _push("models", model, options, public, card, show_card, pool, wait, json)


def push_dataset(
    dataset: Annotated[str, typer.Argument(help="Name, PIPELINE.STAGE, id or the end of an id.")],
    repo: Repo,
    public: Public = False,
    licence: Licence = None,
    card: CardFile = None,
    show_card: ShowCard = False,
    pool: Pool = "default",
    wait: Wait = True,
    json: JsonOption = False,
) -> None:
    """Push a dataset to a repository of the hub: a parquet file of each split, and a card. The repository is private
    unless asked otherwise; an equal push changes nothing."""
    _push("datasets", dataset, {"repo": repo, "licence": licence}, public, card, show_card, pool, wait, json)


def _push(
    kind: str,
    name: str,
    options: dict[str, str | None],
    public: bool,
    card: Path | None,
    show_card: bool,
    pool: str,
    wait: bool,
    json: bool,
) -> None:
    client = Client()
    if show_card:
        written = client.get(path_of(kind, name, "card"), **options)
        if json:
            print_json(written)
        else:
            sys.stdout.write(written["text"])
        return
    body: dict[str, Any] = {**options, "private": not public, "pool": pool}
    if card is not None:
        body["card"] = _read(card)
    run = client.post(path_of(kind, name, "push"), body)
    if wait:
        wait_for(client, run)
        run = client.get(f"runs/{run['id']}")
    if json:
        print_json(run)
    elif not wait:
        console().print(plain(f"Started the push {run['name']}  {run['id']}"))
    elif run["state"] == "succeeded":
        done = run["summary"]
        seen = "private" if done["private"] else "public"
        console().print(plain(f"Pushed {name} to {done['url']} ({seen}), commit {done['commit'][:12]}"))
    if wait and run["state"] != "succeeded":
        note(f"{run['reason']} [{run['reason_code']}]")
        if hint := (run["error"] or {}).get("hint"):
            note(hint)
        raise typer.Exit(EXIT_FAILED)


def _read(card: Path) -> str:
    try:
        return card.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{card} cannot be read: {error}", code="no_such_file", hint="Give a text file.") from error


@token_app.command("set")
def set_token(json: JsonOption = False) -> None:
    """Set the project's token, from standard input or asked for on a terminal. It is stored sealed and never shown."""
    token = typer.prompt("Token", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()
    out = Client().request("PUT", "hub-token", json={"token": token.strip()}).json()
    tell("The project has a hub token", out, json=json)


@token_app.command("show")
def show_token(json: JsonOption = False) -> None:
    """Show where the token comes from, never the token."""
    out = Client().get("hub-token")
    words = {"project": "The project has its own token", "server": "The token of the server's environment is used"}
    tell(words.get(out["source"], "There is no token; set one: steerboard hub-token set"), out, json=json)


@token_app.command("remove")
def remove_token(json: JsonOption = False) -> None:
    """Remove the project's token; that of the environment is used again."""
    Client().delete("hub-token")
    tell("The project has no hub token of its own", {"removed": True}, json=json)
