"""`steerboard models`: import, fit, list, show, academic, lineage, promote, export, serve, delete."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer
from rich.text import Text

from steerboard.cli.client import Client, path_of
from steerboard.cli.models.files import add_guided_script, download_model
from steerboard.cli.models.fit import fit
from steerboard.cli.models.importing import import_
from steerboard.cli.models.serving import serve
from steerboard.cli.output.academic_table import print_academic
from steerboard.cli.output.console import JsonOption, console, note, print_json, tell
from steerboard.cli.output.listing import Column, moment, plain, print_table
from steerboard.cli.output.numbers import short
from steerboard_contracts.attribute_names import SCORE
from steerboard_contracts.errors import BadInput
from steerboard_contracts.models import ModelRole
from steerboard_contracts.report.academic import AcademicRow
from steerboard_contracts.wording import counted

app = typer.Typer(no_args_is_help=True, help="Import, inspect, promote and export models.")

Name = Annotated[str, typer.Argument(help="Name, an id or its end, @production or @production-reward.")]
Stage = Literal["candidate", "production", "none"]
Out = dict[str, Any]

_COLUMNS = (
    Column("model"),
    Column("role"),
    Column("method", drop=6),
    Column("stage", drop=4, styles={"production": "green"}),
    Column("architecture", drop=8),
    Column("parameters", lambda count: f"{count:,}", drop=5, right=True),
    Column("size", lambda size: f"{size / 2**20:,.1f} MB", drop=7, right=True),
    Column("created", moment, drop=3),
    Column("id", drop=2, id=True),
)


@app.command("list")
def list_models(
    role: Annotated[str | None, typer.Option(help=f"Only {', '.join(get_args(ModelRole))}.")] = None,
    stage: Annotated[str | None, typer.Option(help="Only candidate or production.")] = None,
    name: Annotated[str | None, typer.Option(help="Only names that contain this.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most this many.")] = 50,
    json: JsonOption = False,
) -> None:
    """List models, newest first."""
    found = list(Client().pages("models", limit=limit, role=role, stage=stage, name=name))
    if json:
        print_json(found)
        return
    if not found:
        note("No models match. A pipeline makes them: steerboard run RECIPE")
        return
    keys = ("name", "role", "method", "stage")
    rows = [
        (
            *(model[key] for key in keys),
            model["info"]["architecture"],
            model["info"]["parameters"],
            model["size"],
            model["created_at"],
            model["id"],
        )
        for model in found
    ]
    print_table(console(), _COLUMNS, rows)


@app.command()
def show(model: Name, json: JsonOption = False) -> None:
    """Show a model: what it is, its reward prompt and normaliser, its files."""
    found: Out = Client().get(path_of("models", model))
    if json:
        print_json(found)
        return
    info, out = found["info"], console()
    what = f"{found['role']} {found['method'] or ''}".strip()
    words = f": {what}, {info['architecture']}, {info['parameters']:,} parameters, template {info['template']}, "
    out.print(Text.assemble((found["name"], "bold"), plain(f"{words}{info['max_length']} tokens")))
    out.print(f"  id {found['id']}, content {found['content_hash'][:16]}, created {found['created_at'][:16]}")
    if types := info["lineage"].get("dequantised_from"):
        out.print(plain(f"  dequantised from {types}, in {info['lineage']['file']}"))
    if normaliser := info["normaliser"]:
        out.print(
            f"  rewards: mean {short(normaliser['mean'])}, sd {short(normaliser['sd'])} over {normaliser['n']:,} "
            f"rows, by {normaliser['reward_source']}"
        )
    for one in (info["condition"] or {}).get("attributes", ()):
        name = "scores" if one["name"] == SCORE else one["name"]
        scale = f", {info['score_scale']['kind']}" if info["score_scale"] and one["name"] == SCORE else ""
        default = "left out" if one["default"] is None else f"{one['default']:g}"
        out.print(f"  {name}: {one['low']:g} to {one['high']:g}{scale}; {default} unless asked otherwise")
    for file in found["files"]:
        out.print(f"  {file['path']}  {file['size']:,} bytes  {file['sha256'][:12]}")


@app.command()
def promote(
    model: Name,
    stage: Annotated[Stage, typer.Option(help="production replaces the model that is there now.")],
    note: Annotated[str, typer.Option(help="Why.")] = "",
    json: JsonOption = False,
) -> None:
    """Move a model to production or to the candidates, or out of its stage. @production names it afterwards."""
    body = {"stage": None if stage == "none" else stage, "note": note}
    found = Client().post(path_of("models", model, "promotions"), body)
    words = f"{model} is in no stage" if stage == "none" else f"{model} is now in the stage {stage}"
    tell(words, found, json=json)


@app.command("roll-back")
def roll_back(model: Name, note: Annotated[str, typer.Option(help="Why.")] = "", json: JsonOption = False) -> None:
    """Take a model out of production again. The one whose place it took is in production then."""
    found = Client().post(path_of("models", model, "roll-back"), {"note": note})
    tell(f"{found['name']} is in production again", found, json=json)


@app.command()
def academic(model: Name, json: JsonOption = False) -> None:
    """Show a model's academic benchmarks, and what it gained over its nearest base and sft models by item."""
    found = Client().get(path_of("models", model, "academic"))
    if json:
        print_json(found)
    elif not found:
        note(f"No academic run of {model} has finished. Start one with POST runs, in a recipe or in the dashboard.")
    else:
        print_academic(console(), [AcademicRow.model_validate(row) for row in found])


@app.command()
def lineage(model: Name, json: JsonOption = False) -> None:
    """Show what a model was made from: parents, runs, data, reward models."""
    found: Out = Client().get(path_of("models", model, "lineage"))
    if json:
        print_json(found)
        return
    nodes = {node["id"]: node for node in found["nodes"]}
    sources: dict[str, list[Out]] = {}
    for edge in found["edges"]:
        sources.setdefault(edge["target"], []).append(edge)
    out = console()
    out.print(_label(nodes[found["model"]], None))
    for depth, label in _sources(found["model"], nodes, sources, {found["model"]}):
        out.print(Text.assemble("  " * depth, label), soft_wrap=True)
    for child in found["children"]:
        out.print(f"made from it: {child['name']} ({child['detail']})")


def _label(node: Out, role: str | None) -> Text:
    start = f"{role}: " if role else ""
    return Text.assemble(start, (node["name"], "bold"), plain(f" {node['type']} {node['detail']}"))


def _sources(
    id_: str, nodes: dict[str, Out], sources: dict[str, list[Out]], shown: set[str], depth: int = 1
) -> Iterator[tuple[int, Text]]:
    """(depth, label) of everything that a node was made from; what was shown before is not opened again."""
    for edge in sources.get(id_, []):
        source = edge["source"]
        again = source in shown
        yield depth, _label(nodes[source], edge["role"]).append(" (see above)" if again else "")
        if not again:
            shown.add(source)
            yield from _sources(source, nodes, sources, shown, depth + 1)


@app.command()
def export(
    model: Name,
    folder: Annotated[Path, typer.Argument(help="A folder that does not exist yet.")],
    json: JsonOption = False,
) -> None:
    """Write a model as a folder that transformers and vLLM load as it is; every file's hash is verified. With a policy
    that takes scores comes sample_guided.py, which samples with guidance."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} exists and is not empty", code="target_exists", hint="Name another folder.")
    client = Client()
    found: Out = client.get(path_of("models", model))
    temporary = folder.absolute().with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        download_model(client, found, temporary)
        script = add_guided_script(found, temporary)
        folder.parent.mkdir(parents=True, exist_ok=True)
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    words = f"Wrote {found['name']} to {folder} ({counted(len(found['files']), 'file')}, {found['size']:,} bytes)"
    if script is not None:
        words += f"; {script.name} in it samples with guidance"
    tell(words, {"model": found["name"], "folder": str(folder), "bytes": found["size"]}, json=json)


app.command("import")(import_)
app.command()(fit)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(serve)


@app.command()
def delete(
    model: Name, yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False, json: JsonOption = False
) -> None:
    """Delete a model that nothing refers to."""
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Delete model {model}?", abort=True)
    Client().delete(path_of("models", model))
    tell(f"Deleted {model}", {"deleted": model}, json=json)
