"""`steerboard models`: import, fit, list, show, academic, lineage, promote, export, push, snippet, serve, delete."""

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
from steerboard.cli.models.gguf import download_gguf, made_gguf, tell_of_gguf
from steerboard.cli.models.importing import import_
from steerboard.cli.models.serving import serve
from steerboard.cli.models.snippets import snippet
from steerboard.cli.output.academic_table import print_academic
from steerboard.cli.output.console import JsonOption, console, note, print_json, tell
from steerboard.cli.output.listing import Column, moment, plain, print_table
from steerboard.cli.output.numbers import short
from steerboard.cli.pushing import push_model
from steerboard_contracts.attribute_names import SCORE
from steerboard_contracts.errors import BadInput
from steerboard_contracts.models import ModelRole
from steerboard_contracts.report.academic import AcademicRow
from steerboard_contracts.wording import counted

app = typer.Typer(no_args_is_help=True, help="Import, inspect, promote and export models.")

Name = Annotated[str, typer.Argument(help="Name, id or the end of an id, @production or @production-reward.")]
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
    role: Annotated[
        str | None, typer.Option(help=f"Only models of this role: {', '.join(get_args(ModelRole))}.")
    ] = None,
    stage: Annotated[str | None, typer.Option(help="Only models in this stage: candidate or production.")] = None,
    name: Annotated[str | None, typer.Option(help="Only names containing this text.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many.")] = 50,
    json: JsonOption = False,
) -> None:
    """List models, newest first."""
    models = list(Client().pages("models", limit=limit, role=role, stage=stage, name=name))
    if json:
        print_json(models)
        return
    if not models:
        note("No models match. Train some with a recipe: steerboard run RECIPE")
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
        for model in models
    ]
    print_table(console(), _COLUMNS, rows)


@app.command()
def show(model: Name, json: JsonOption = False) -> None:
    """Show a model: its properties, reward prompt, normaliser and files."""
    details: Out = Client().get(path_of("models", model))
    if json:
        print_json(details)
        return
    info, out = details["info"], console()
    what = f"{details['role']} {details['method'] or ''}".strip()
    words = f": {what}, {info['architecture']}, {info['parameters']:,} parameters, template {info['template']}, "
    out.print(Text.assemble((details["name"], "bold"), plain(f"{words}{info['max_length']} tokens")))
    out.print(f"  id {details['id']}, content {details['content_hash'][:16]}, created {details['created_at'][:16]}")
    if types := info["lineage"].get("dequantised_from"):
        out.print(plain(f"  dequantised from {types}, in {info['lineage']['file']}"))
    if normaliser := info["normaliser"]:
        out.print(
            f"  rewards: mean {short(normaliser['mean'])}, sd {short(normaliser['sd'])} over {normaliser['n']:,} "
            f"rows, by {normaliser['reward_source']}"
        )
    for attribute in (info["condition"] or {}).get("attributes", ()):
        name = "scores" if attribute["name"] == SCORE else attribute["name"]
        scale = f", {info['score_scale']['kind']}" if info["score_scale"] and attribute["name"] == SCORE else ""
        default = "left out" if attribute["default"] is None else f"{attribute['default']:g}"
        out.print(f"  {name}: {attribute['low']:g} to {attribute['high']:g}{scale}; {default} unless asked otherwise")
    for file in details["files"]:
        out.print(f"  {file['path']}  {file['size']:,} bytes  {file['sha256'][:12]}")


@app.command()
def promote(
    model: Name,
    stage: Annotated[Stage, typer.Option(help="New stage; production replaces the current production model.")],
    note: Annotated[str, typer.Option(help="Reason for the change.")] = "",
    json: JsonOption = False,
) -> None:
    """Move a model to production, make it a candidate, or remove it from its stage. @production is the model in
    production."""
    body = {"stage": None if stage == "none" else stage, "note": note}
    promoted = Client().post(path_of("models", model, "promotions"), body)
    words = f"{model} has no stage now" if stage == "none" else f"{model} is now in the stage {stage}"
    tell(words, promoted, json=json)


@app.command("roll-back")
def roll_back(
    model: Name, note: Annotated[str, typer.Option(help="Reason for the change.")] = "", json: JsonOption = False
) -> None:
    """Take a model out of production and put back the one that it replaced."""
    restored = Client().post(path_of("models", model, "roll-back"), {"note": note})
    tell(f"{restored['name']} is in production again", restored, json=json)


@app.command()
def academic(model: Name, json: JsonOption = False) -> None:
    """Show a model's academic benchmarks, and its gains by item over its nearest base and sft models."""
    results = Client().get(path_of("models", model, "academic"))
    if json:
        print_json(results)
    elif not results:
        note(f"No academic run of {model} has finished. Start one with POST runs, in a recipe or in the dashboard.")
    else:
        print_academic(console(), [AcademicRow.model_validate(row) for row in results])


@app.command()
def lineage(model: Name, json: JsonOption = False) -> None:
    """Show what a model was made from: parents, runs, data, reward models."""
    graph: Out = Client().get(path_of("models", model, "lineage"))
    if json:
        print_json(graph)
        return
    nodes = {node["id"]: node for node in graph["nodes"]}
    sources: dict[str, list[Out]] = {}
    for edge in graph["edges"]:
        sources.setdefault(edge["target"], []).append(edge)
    out = console()
    out.print(_label(nodes[graph["model"]], None))
    for depth, label in _sources(graph["model"], nodes, sources, {graph["model"]}):
        out.print(Text.assemble("  " * depth, label), soft_wrap=True)
    for child in graph["children"]:
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
    folder: Annotated[Path, typer.Argument(help="Folder to write; it must be empty or not exist yet.")],
    gguf: Annotated[
        Literal["f16", "q8_0"] | None,
        typer.Option(help="One GGUF file for llama.cpp and Ollama, of 16 or 8 bits a weight, made by a worker."),
    ] = None,
    pool: Annotated[str, typer.Option(help="Worker pool that makes the GGUF file.")] = "default",
    json: JsonOption = False,
) -> None:
    """Export a model to a folder that transformers and vLLM load; every file's hash is verified. Policies that take
    scores come with sample_guided.py, which samples with guidance."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} exists and is not empty", code="target_exists", hint="Name another folder.")
    client = Client()
    details: Out = client.get(path_of("models", model))
    temporary = folder.absolute().with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.partial")
    exported = None if gguf is None else made_gguf(client, details, gguf, pool)
    try:
        if exported is not None:
            download_gguf(client, details, exported, temporary)
        else:
            download_model(client, details, temporary)
            script = add_guided_script(details, temporary)
        folder.parent.mkdir(parents=True, exist_ok=True)
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    if exported is not None:
        tell_of_gguf(details, exported, folder, json=json)
        return
    words = f"Wrote {details['name']} to {folder} ({counted(len(details['files']), 'file')}, {details['size']:,} bytes)"
    if script is not None:
        words += f"; {script.name} in it samples with guidance"
    tell(words, {"model": details["name"], "folder": str(folder), "bytes": details["size"]}, json=json)


app.command("import")(import_)
app.command("push")(push_model)
app.command()(snippet)
app.command()(fit)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(serve)


@app.command()
def delete(
    model: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    json: JsonOption = False,
) -> None:
    """Delete a model that nothing refers to."""
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Delete model {model}?", abort=True)
    Client().delete(path_of("models", model))
    tell(f"Deleted {model}", {"deleted": model}, json=json)
