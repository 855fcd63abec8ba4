"""`steerboard comments`: what people say about runs, pipelines, models, datasets and evaluations."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

import typer
from rich.text import Text

from steerboard.cli.client import Client, path_of
from steerboard.cli.output.console import JsonOption, console, note, print_json, tell
from steerboard.cli.output.listing import moment, plain

app = typer.Typer(no_args_is_help=True, help="Comment on runs, pipelines, models, datasets and reports.")

Out = dict[str, Any]
Commented = Annotated[
    Literal["run", "pipeline", "model", "dataset", "evaluation"], typer.Argument(help="What the comments are about.")
]
Item = Annotated[str, typer.Argument(help="Name, PIPELINE.STAGE, id or the end of an id.")]


@app.command("list")
def list_(type_: Commented, item: Item, json: JsonOption = False) -> None:
    """Show the comments, oldest first."""
    comments: list[Out] = Client().get(path_of("marks", type_, item, "comments"))
    if json:
        print_json(comments)
        return
    if not comments:
        note("No comments.")
    out = console()
    for comment in comments:
        edited = ", edited" if comment["edited_at"] else ""
        out.print(Text(f"{comment['actor']}, {moment(comment['created_at'])}{edited}  {comment['id']}", style="dim"))
        out.print(plain(comment["text"]), soft_wrap=True)


@app.command()
def add(
    type_: Commented,
    item: Item,
    text: Annotated[str, typer.Argument(help="Markdown; @NAME notifies a member, - reads standard input.")],
    json: JsonOption = False,
) -> None:
    """Write a comment."""
    written = sys.stdin.read() if text == "-" else text
    made: Out = Client().post(path_of("marks", type_, item, "comments"), {"text": written})
    tell(f"Commented on {item}", made, json=json)


@app.command()
def delete(comment: Annotated[str, typer.Argument(help="Id, as printed by `list`.")], json: JsonOption = False) -> None:
    """Delete your own comment; admins can delete any."""
    Client().delete(path_of("comments", comment))
    tell(f"Deleted comment {comment}", {"deleted": comment}, json=json)
