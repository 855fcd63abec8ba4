"""`steerboard datasets versions`, `difference`, `pending`, `version` and `discard`: what changed between versions, and
a new one from the changes that people made row by row in the dashboard."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.text import Text

from steerboard.cli.client import Client, path_of
from steerboard.cli.output.console import JsonOption, console, note, print_json, tell
from steerboard.cli.output.held_out_changes import print_held_out_changes
from steerboard.cli.output.listing import Column, moment, plain, print_table
from steerboard_contracts.tools import answer_text
from steerboard_contracts.wording import counted

app = typer.Typer()

Out = dict[str, Any]
Name = Annotated[str, typer.Argument(help="Name, PIPELINE.STAGE, id or the end of an id.")]

# Contents of large datasets are compared once, which takes some time.
_PATIENT_S = 3600.0
_VERSIONS = (
    Column("version"),
    Column("made by"),
    Column("rows", lambda count: f"{count:,}", right=True),
    Column("dropped", lambda count: f"{count:,}", right=True, drop=2),
    Column("edited", lambda count: f"{count:,}", right=True, drop=2),
    Column("by", drop=1),
    Column("created", moment, drop=3),
)
_STYLES = {"added": "green", "removed": "red", "changed": "yellow"}


@app.command()
def versions(dataset: Name, json: JsonOption = False) -> None:
    """List all datasets that were cleaned or edited from one another."""
    family: list[Out] = Client().get(path_of("datasets", dataset, "versions"))
    if json:
        print_json(family)
        return
    keys = ("name", "made_by", "rows", "dropped", "edited", "actor", "created_at")
    print_table(console(), _VERSIONS, [tuple("" if row[key] is None else row[key] for key in keys) for row in family])


@app.command()
def difference(
    before: Name,
    after: Name,
    change: Annotated[
        Literal["added", "removed", "changed"] | None, typer.Option(help="Show only rows that changed like this.")
    ] = None,
    rows: Annotated[int, typer.Option(min=0, help="Show at most this many rows.")] = 20,
    json: JsonOption = False,
) -> None:
    """Compare two versions of a dataset, or two datasets of one kind, row by row."""
    client, path = Client(timeout=_PATIENT_S), path_of("datasets", after, "difference")
    counts: Out = client.get(path, before=before)
    different = list(client.pages(f"{path}/rows", rows, before=before, change=change)) if rows else []
    if json:
        print_json({**counts, "rows": different})
        return
    out = console()
    told = ", ".join(f"{counts[key]:,} {key}" for key in ("added", "removed", "changed"))
    how = "by place in the versions" if counts["by"] == "version" else "by content"
    out.print(plain(f"{counts['before']} -> {counts['after']}: {told}, {counts['same']:,} the same (matched {how})"))
    for row in different:
        _print_row(out, row["change"], row["before"], row["after"], row["fields"])


@app.command()
def pending(
    dataset: Name,
    rows: Annotated[int, typer.Option(min=0, help="Show at most this many rows.")] = 20,
    json: JsonOption = False,
) -> None:
    """Show the changes of rows that are in no version yet."""
    client, path = Client(), path_of("datasets", dataset, "review")
    summary: Out = client.get(path)
    changes = list(client.pages(f"{path}/changes", rows)) if rows else []
    if json:
        print_json({**summary, "rows": changes})
        return
    if not any(summary[key] for key in ("edited", "flipped", "removed")):
        note("No changes are pending. Edit rows on the dataset's page.")
        return
    told = ", ".join(f"{summary[key]:,} {key}" for key in ("edited", "flipped", "removed") if summary[key])
    out = console()
    out.print(plain(f"{told}, by {', '.join(summary['actors'])}"))
    for row in changes:
        kind = "removed" if row["after"] is None else "changed"
        _print_row(out, kind, row["before"], row["after"], _differing(row["before"], row["after"]))


@app.command()
def version(
    dataset: Name,
    name: Annotated[str | None, typer.Option(help="Name of the new version. [default: DATASET-edited-N]")] = None,
    json: JsonOption = False,
) -> None:
    """Make a new version of a dataset from its pending changes."""
    made: Out = Client(timeout=_PATIENT_S).post(path_of("datasets", dataset, "review", "version"), {"name": name})
    if json:
        print_json(made)
        return
    console().print(plain(f"Made {made['name']} with {counted(made['rows'], 'row')}"))
    print_held_out_changes(made, console())


@app.command()
def discard(
    dataset: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    json: JsonOption = False,
) -> None:
    """Discard all pending changes of a dataset. Flags and comments stay."""
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Discard all pending changes of {dataset}?", abort=True)
    done: Out = Client().delete(path_of("datasets", dataset, "review", "changes"))
    tell(f"Discarded the changes of {counted(done['rows'], 'row')}", done, json=json)


def _print_row(out: Console, change: str, before: Out | None, after: Out | None, fields: list[str]) -> None:
    shown = after or before or {}
    held_out = " (held out)" if shown["split"] == "held_out" else ""
    out.print(Text(f"{change} row {shown['row']}{held_out}", style=_STYLES[change]))
    if change != "changed":
        texts = {"prompt": shown["sample"]["prompt"], **shown["sample"]}
        for field, value in texts.items():
            out.print(plain(f"  {field}: {_text(value)}"), soft_wrap=True)
        return
    for field in fields:
        for mark, sample, style in (("-", before, "red"), ("+", after, "green")):
            value = _text((sample or {}).get("sample", {}).get(field))
            out.print(Text(f"  {mark} {field}: {plain(value)}", style=style), soft_wrap=True)


def _differing(before: Out, after: Out | None) -> list[str]:
    one, other = before["sample"], (after or {"sample": {}})["sample"]
    return [field for field in sorted({*one, *other}) if one.get(field) != other.get(field)]


def _text(value: Any) -> str:
    """A prompt as its last turn, an answer with its calls, anything else as it is."""
    if isinstance(value, list) and value:
        return str(value[-1]["content"])
    return answer_text(value) if isinstance(value, dict) and "tool_calls" in value else str(value)
