"""`steerboard models fit`: what a model weighs and needs, before it is downloaded or uploaded."""

from __future__ import annotations

import json as json_files
from pathlib import Path
from typing import Annotated, Any

import typer

from steerboard.cli.client import Client
from steerboard.cli.models.uploads import folder_here, model_files
from steerboard.cli.output.console import EXIT_FAILED, JsonOption, console, print_json
from steerboard.cli.output.listing import Column, plain, print_table
from steerboard_contracts.errors import BadModel
from steerboard_contracts.files.base_sources import GGUF
from steerboard_contracts.files.gguf import read_header
from steerboard_contracts.files.model_facts import ModelFacts, facts_of_gguf, licence_of_card
from steerboard_contracts.wording import counted

_USES = {"training": "training", "lora": "LoRA", "inference": "inference"}
_COLUMNS = (
    Column("worker"),
    Column("pool", drop=3),
    Column("has", drop=2, right=True),
    *(Column(name, right=True) for name in _USES.values()),
)


def fit(
    source: Annotated[
        str, typer.Argument(metavar="FOLDER|ORG/NAME[@REVISION]", help="A model folder, a .gguf file, or a hub name.")
    ],
    json: JsonOption = False,
) -> None:
    """Show a model's size and properties, and whether it fits the workers, before its download or upload. Exits with 1
    if it fits no worker for any use."""
    place = folder_here(source)
    request = {"source": source} if place is None else {"facts": _facts(place).model_dump(mode="json")}
    fitting = Client().post("models/fit", request)
    if json:
        print_json(fitting)
    else:
        _show(source, fitting)
    verdicts = [need["fits"] for worker in fitting["workers"] for need in worker["needs"]]
    if verdicts and not any(fits is not False for fits in verdicts):
        raise typer.Exit(EXIT_FAILED)


def _facts(place: Path) -> ModelFacts:
    """The facts of a folder or a .gguf file here. Raises as `model_files` does, and `BadModel`."""
    files = model_files(place)
    file = next(iter(files.values()))
    sizes = {name: path.stat().st_size for name, path in files.items()}
    if file.suffix == GGUF:
        with file.open("rb") as content:
            facts = facts_of_gguf(read_header(content, sizes[file.name], file.name), sizes[file.name])
        return facts.model_copy(update={"licence": facts.licence or _licence(file.parent)})
    settings = "tokenizer_config.json"
    return ModelFacts(
        config=_json(files["config.json"]),
        files=len(files),
        size=sum(sizes.values()),
        weights=sum(size for name, size in sizes.items() if name.endswith(".safetensors")),
        template="chat_template.jinja" in files
        or (settings in files and bool(_json(files[settings]).get("chat_template"))),
        licence=_licence(files["config.json"].parent),
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        document = json_files.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BadModel(f"{path.name} cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise BadModel(f"{path.name} is not a JSON object")
    return document


def _licence(folder: Path) -> str | None:
    try:
        return licence_of_card((folder / "README.md").read_text(errors="replace"))
    except OSError:
        return None


def _show(source: str, fitting: dict[str, Any]) -> None:
    parameters = f"{fitting['parameters']:,} parameters" if fitting["parameters"] else "unknown number of parameters"
    quantised = f", dequantised from {', '.join(fitting['quantised'])}" if fitting["quantised"] else ""
    template = {
        True: "its own chat template",
        False: "no chat template, so the plain one is used",
        None: "unknown chat template",
    }
    commit, file = fitting["revision"], fitting["file"]
    lines = [
        source + (f" at {commit}" if commit else ""),
        f"{fitting['architecture'] or 'unknown architecture'}, {parameters}{quantised}",
        f"{_size(fitting['size'])} in {counted(fitting['files'], 'file')}" + (f" ({file})" if file else ""),
        f"{template[fitting['template']]}; licence {fitting['licence'] or 'not named'}",
    ]
    if fitting["gated"]:
        lines.append("gated: accept its terms on the hub, and log the workers in")
    for line in lines:
        console().print(plain(line))
    rows = [
        (
            worker["name"],
            worker["pool"],
            _size(worker["device_bytes"]) if worker["device_bytes"] else "",
            *(_verdict(worker["needs"], use) for use in _USES),
        )
        for worker in fitting["workers"]
    ]
    if rows:
        print_table(console(), _COLUMNS, rows, heading=True)
    else:
        console().print("No worker is running.")


def _verdict(needs: list[dict[str, Any]], use: str) -> str:
    need = next((row for row in needs if row["use"] == use), None)
    if need is None:
        return "not known"
    return _size(need["bytes"]) + {True: " fits", False: " too large", None: ""}[need["fits"]]


def _size(count: int) -> str:
    return f"{count / 2**30:,.1f} GB" if count >= 1 << 30 else f"{count / 2**20:,.1f} MB"
