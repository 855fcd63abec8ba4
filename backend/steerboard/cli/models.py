"""`steerboard models`: list, show, lineage, promote, export, serve, delete."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
import typer
from rich.console import Console
from rich.table import Table
from rich.tree import Tree

from steerboard.cli.client import Client
from steerboard.cli.model_files import download_model
from steerboard.cli.model_serving import serve
from steerboard_contracts.errors import BadInput

app = typer.Typer(no_args_is_help=True, help="Look at models, promote and export them.")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
Name = Annotated[str, typer.Argument(help="Name, id, @production or @production-reward.")]
Stage = Literal["candidate", "production", "none"]
Out = dict[str, Any]


@app.command("list")
def list_models(
    role: Annotated[str | None, typer.Option(help="Only base, sft, reward, preference or policy.")] = None,
    stage: Annotated[str | None, typer.Option(help="Only candidate or production.")] = None,
    name: Annotated[str | None, typer.Option(help="Only names that contain this.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most this many.")] = 50,
    as_json: Json = False,
) -> None:
    """List models, newest first."""
    found = list(Client().pages("models", limit=limit, role=role, stage=stage, name=name))
    if as_json:
        print(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
        return
    if not found:
        print("No models yet. A pipeline makes them: steerboard run recipes/offline-rlhf.yaml")
        return
    table = Table("Name", "Role", "Method", "Stage", "Architecture", "Parameters", "Size", "Created", box=None)
    for model in found:
        info = model["info"]
        table.add_row(
            model["name"],
            model["role"],
            model["method"] or "",
            model["stage"] or "",
            info["architecture"],
            f"{info['parameters']:,}",
            f"{model['size'] / 2**20:,.1f} MB",
            model["created_at"][:16].replace("T", " "),
        )
    Console().print(table)


@app.command()
def show(model: Name, as_json: Json = False) -> None:
    """Show a model: what it is, its reward prompt and normaliser, its files."""
    found: Out = Client().get(f"models/{model}")
    if as_json:
        print(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
        return
    info, console = found["info"], Console()
    console.print(
        f"[bold]{found['name']}[/]: {found['role']} {found['method'] or ''}, {info['architecture']}, "
        f"{info['parameters']:,} parameters, template {info['template']}, {info['max_length']} tokens"
    )
    console.print(f"  id {found['id']}, content {found['content_hash'][:16]}, created {found['created_at'][:16]}")
    if normaliser := info["normaliser"]:
        console.print(
            f"  rewards: mean {normaliser['mean']:.4g}, sd {normaliser['sd']:.4g} over {normaliser['n']:,} "
            f"rows, by {normaliser['reward_source']}"
        )
    if info["score_format"]:
        limit, scale = info["score_format"]["limit"], (info["score_scale"] or {}).get("kind", "zscore")
        console.print(f"  scores: -{limit:g} to {limit:g}, {scale}; {info['default_score']} unless asked otherwise")
    for file in found["files"]:
        console.print(f"  {file['path']}  {file['size']:,} bytes  {file['sha256'][:12]}", highlight=False)


@app.command()
def promote(
    model: Name,
    stage: Annotated[Stage, typer.Option(help="production takes the place of the model that is there now.")],
    note: Annotated[str, typer.Option(help="Why.")] = "",
) -> None:
    """Move a model to production or to the candidates, or out of its stage. @production names it afterwards."""
    body = {"stage": None if stage == "none" else stage, "note": note}
    Client().post(f"models/{model}/promotions", body)
    print(f"{model} is in no stage" if stage == "none" else f"{model} is now in the stage {stage}")


@app.command()
def lineage(model: Name, as_json: Json = False) -> None:
    """Show what a model was made from: parents, runs, data, reward models."""
    found: Out = Client().get(f"models/{model}/lineage")
    if as_json:
        print(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
        return
    nodes = {node["id"]: node for node in found["nodes"]}
    sources: dict[str, list[Out]] = {}
    for edge in found["edges"]:
        sources.setdefault(edge["target"], []).append(edge)
    tree = Tree(_label(nodes[found["model"]], None))
    _grow(tree, found["model"], nodes, sources, {found["model"]})
    console = Console()
    console.print(tree)
    for child in found["children"]:
        console.print(f"made from it: {child['name']} ({child['detail']})")


def _label(node: Out, role: str | None) -> str:
    return f"{f'{role}: ' if role else ''}[bold]{node['name']}[/] {node['type']} {node['detail']}"


def _grow(branch: Tree, id_: str, nodes: dict[str, Out], sources: dict[str, list[Out]], shown: set[str]) -> None:
    for edge in sources.get(id_, []):
        source = edge["source"]
        again = source in shown
        twig = branch.add(_label(nodes[source], edge["role"]) + (" (see above)" if again else ""))
        if not again:
            shown.add(source)
            _grow(twig, source, nodes, sources, shown)


@app.command()
def export(model: Name, folder: Annotated[Path, typer.Argument(help="A folder that does not exist yet.")]) -> None:
    """Write a model as a folder that transformers and vLLM load as it is; every file's hash is verified."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} exists and is not empty", code="target_exists", hint="Name another folder.")
    client = Client()
    found: Out = client.get(f"models/{model}")
    temporary = folder.absolute().with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        download_model(client, found, temporary)
        folder.parent.mkdir(parents=True, exist_ok=True)
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    print(f"Wrote {found['name']} to {folder} ({len(found['files'])} files, {found['size']:,} bytes)")


app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(serve)


@app.command()
def delete(model: Name, yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """Delete a model that nothing refers to."""
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Delete model {model}?", abort=True)
    Client().delete(f"models/{model}")
    print(f"Deleted {model}")
