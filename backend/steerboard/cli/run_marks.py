"""`steerboard runs`: tags, notes, the archive, and deletion with what depends on it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from steerboard.cli.client import Client, path_of
from steerboard.cli.output.console import EXIT_FAILED, JsonOption, console, note, print_json, tell
from steerboard.cli.output.listing import Column, plain, print_table

app = typer.Typer()

References = Annotated[list[str], typer.Argument(metavar="RUN...", help="PIPELINE.STAGE, ids or the ends of ids.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
_NAMED = 5


@app.command()
def columns(json: JsonOption = False) -> None:
    """List what runs can be filtered and sorted by: fields, settings, metrics and results."""
    columns_ = Client().get("run-columns")
    if json:
        print_json(columns_)
        return
    rows = [(column["name"], column["source"], column["about"] or _better(column)) for column in columns_]
    print_table(console(), (Column("name"), Column("source"), Column("about", words=True)), rows)


def _better(column: dict[str, Any]) -> str:
    return f"better {column['better']}" if column["better"] else ""


@app.command()
def tag(
    runs: References,
    add: Annotated[list[str], typer.Option("--add", help="Add this tag; may be repeated.")] = [],  # noqa: B006
    remove: Annotated[list[str], typer.Option("--remove", help="Remove this tag; may be repeated.")] = [],  # noqa: B006
    json: JsonOption = False,
) -> None:
    """Add tags to runs, or remove them."""
    client = Client()
    change = {"action": "tag", "runs": _ids(client, runs), "add_tags": add, "remove_tags": remove}
    done = client.post("run-changes", change)
    tell(f"Tagged {_listed(done['done'])}", done, json=json)


@app.command("note")
def note_(
    run: Annotated[str, typer.Argument(help="PIPELINE.STAGE, id or the end of an id.")],
    text: Annotated[str, typer.Argument(help="Markdown that replaces the notes; - reads standard input.")],
    json: JsonOption = False,
) -> None:
    """Write the notes of a run."""
    written = sys.stdin.read() if text == "-" else text
    marks = Client().patch(path_of("marks", "run", run), {"notes": written})
    tell(f"Wrote the notes of {run}", marks, json=json)


@app.command()
def archive(runs: References, json: JsonOption = False) -> None:
    """Hide runs from lists. `runs list --filter is:archived` shows them."""
    client = Client()
    done = client.post("run-changes", {"action": "archive", "runs": _ids(client, runs)})
    tell(f"Archived {_listed(done['done'])}", done, json=json)


@app.command()
def restore(runs: References, json: JsonOption = False) -> None:
    """Take runs back from the archive."""
    client = Client()
    done = client.post("run-changes", {"action": "restore", "runs": _ids(client, runs)})
    tell(f"Restored {_listed(done['done'])}", done, json=json)


@app.command()
def delete(
    runs: References,
    skip: Annotated[bool, typer.Option("--skip", help="Leave out runs that cannot be deleted.")] = False,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Delete runs with their metrics, logs and checkpoints. Models and datasets that they made stay."""
    client = Client()
    change = {"action": "delete", "runs": _ids(client, runs), "skip": skip}
    expected = client.post("run-changes/preview", change)
    if not json:
        _print_consequences(expected)
    if not expected["done"]:
        if json:
            print_json(expected)
        note("Nothing was deleted.")
        raise typer.Exit(EXIT_FAILED)
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Delete {_listed(expected['done'])}?", abort=True)
    done = client.post("run-changes", change)
    tell(f"Deleted {_listed(done['done'])}", done, json=json)


def _print_consequences(expected: dict[str, Any]) -> None:
    out = console(stderr=True)
    for change in expected["skipped"]:
        out.print(plain(f"{change['run']['name']} cannot be deleted: {change['why']}"), style="yellow")
    for change in expected["done"]:
        for what, things in (("is deleted with it", change["loses"]), ("stays, without its run", change["keeps"])):
            for thing in things:
                out.print(plain(f"{change['run']['name']}: {thing['type']} {thing['name']} {what}"))


def _ids(client: Client, references: Sequence[str]) -> list[str]:
    return [str(client.get(path_of("runs", reference))["id"]) for reference in references]


def _listed(done: Sequence[dict[str, Any]]) -> str:
    names = [change["run"]["name"] for change in done]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
