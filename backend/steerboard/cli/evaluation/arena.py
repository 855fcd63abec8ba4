"""`steerboard arena`: list arenas, their leaderboard, their battles as a file, and votes as preference pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from steerboard.cli.client import Client, path_of
from steerboard.cli.output.console import JsonOption, console, note, print_json, tell
from steerboard.cli.output.listing import Column, moment, plain, print_table
from steerboard.cli.usage import ExactGroup

app = typer.Typer(cls=ExactGroup, no_args_is_help=True, help="Blind battles between policies, judged by people.")

Out = dict[str, Any]
Name = Annotated[str, typer.Argument(help="Name or id of the arena.")]

_COLUMNS = (
    Column("arena"),
    Column("state"),
    Column("votes", right=True),
    Column("sides", right=True, drop=4),
    Column("created", moment, drop=3),
    Column("id", drop=2, id=True),
    Column("entrants", ", ".join, drop=1, words=True),
)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"


_RATINGS = (
    Column("entrant", words=True),
    Column("rating", _number, right=True),
    Column("low", _number, right=True),
    Column("high", _number, right=True),
    Column("elo", _number, right=True, drop=3),
    Column("votes", right=True),
    Column("won", right=True, drop=2),
    Column("tied", right=True, drop=2),
    Column("lost", right=True, drop=2),
)
_RATED = ("model", "rating", "low", "high", "elo", "n", "wins", "ties", "losses")


@app.command("list")
def list_arenas(
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many.")] = 50, json: JsonOption = False
) -> None:
    """List arenas, newest first."""
    arenas = list(Client().pages("arenas", limit=limit))
    if json:
        print_json(arenas)
        return
    if not arenas:
        note("No arenas yet. Create one on the dashboard's Arena page or with POST arenas.")
        return
    keys = ("name", "state", "votes", "sides", "created_at", "id", "entrants")
    print_table(console(), _COLUMNS, [tuple(arena[key] for key in keys) for arena in arenas])


@app.command()
def leaderboard(
    arena: Name,
    category: Annotated[str | None, typer.Option(help="Only battles of this category.")] = None,
    style: Annotated[bool, typer.Option("--style", help="Control for the style of the answers.")] = False,
    json: JsonOption = False,
) -> None:
    """Show Show Bradley-Terry ratings with bootstrap 95% intervals."""
    board: Out = Client(timeout=600.0).get(path_of("arenas", arena, "leaderboard"), category=category)
    if json:
        print_json(board)
        return
    shown: Out = (board["style_controlled"] or {"models": [], "why": board["why"]}) if style else board
    if shown["models"]:
        print_table(console(), _RATINGS, [tuple(model[key] for key in _RATED) for model in shown["models"]])
    if shown.get("why"):
        note(plain(shown["why"]))
    if board["unrated"]:
        note(plain(f"not yet comparable: {', '.join(board['unrated'])}"))


@app.command()
def export(
    arena: Name,
    file: Annotated[Path, typer.Argument(help="File to write, as JSON lines.")],
    json: JsonOption = False,
) -> None:
    """Write every valid vote, one line per pair of entrants, in the format that `steerboard figures` reads."""
    size = Client().download(path_of("arenas", arena, "export"), file)
    tell(f"{file}: {size:,} bytes", {"file": str(file), "bytes": size}, json=json)


@app.command()
def pairs(
    arena: Name,
    train_all: Annotated[
        bool, typer.Option("--train-all", help="Train on pairs of held-out prompts, too; evaluations then report it.")
    ] = False,
    name: Annotated[str | None, typer.Option(help="Dataset name; a version is appended: NAME-1, NAME-2.")] = None,
    json: JsonOption = False,
) -> None:
    """Make a preference dataset from the votes that prefer one answer. Ties and other votes are only counted."""
    body = {"split": "train" if train_all else "by_prompt", "name": name}
    made: Out = Client(timeout=600.0).post(path_of("arenas", arena, "preferences"), body)
    if json:
        print_json(made)
        return
    print(f"Made {made['name']}: {made['rows']:,} pairs ({made['held_out_rows']:,} held out)")
    for reason, count in made["origin"]["left_out"].items():
        print(f"  {count:,} left out: {reason.replace('_', ' ')}")
