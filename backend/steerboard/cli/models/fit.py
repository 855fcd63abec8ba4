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
    """What a model weighs and has, and whether the workers have room for it: before its download or upload. Exit code 1
    where no worker has room for any use."""
    place = folder_here(source)
    asked = {"source": source} if place is None else {"facts": _facts(place).model_dump(mode="json")}
    found = Client().post("models/fit", asked)
    if json:
        print_json(found)
    else:
        _show(source, found)
    verdicts = [need["fits"] for worker in found["workers"] for need in worker["needs"]]
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
        found = json_files.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BadModel(f"{path.name} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise BadModel(f"{path.name} is not a JSON object")
    return found


def _licence(folder: Path) -> str | None:
    try:
        return licence_of_card((folder / "README.md").read_text(errors="replace"))
    except OSError:
        return None


def _show(source: str, found: dict[str, Any]) -> None:
    parameters = f"{found['parameters']:,} parameters" if found["parameters"] else "parameters not known"
    quantised = f", dequantised from {', '.join(found['quantised'])}" if found["quantised"] else ""
    template = {True: "its own chat template", False: "no chat template: the plain one", None: "template not known"}
    commit, file = found["revision"], found["file"]
    lines = [
        source + (f" at {commit}" if commit else ""),
        f"{found['architecture'] or 'architecture not named'}, {parameters}{quantised}",
        f"{_size(found['size'])} in {counted(found['files'], 'file')}" + (f" ({file})" if file else ""),
        f"{template[found['template']]}; licence {found['licence'] or 'not named'}",
    ]
    if found["gated"]:
        lines.append("gated: its terms have to be accepted on the hub, and the workers logged in")
    for line in lines:
        console().print(plain(line))
    rows = [
        (
            worker["name"],
            worker["pool"],
            _size(worker["device_bytes"]) if worker["device_bytes"] else "",
            *(_verdict(worker["needs"], use) for use in _USES),
        )
        for worker in found["workers"]
    ]
    if rows:
        print_table(console(), _COLUMNS, rows, heading=True)
    else:
        console().print("No worker is running.")


def _verdict(needs: list[dict[str, Any]], use: str) -> str:
    need = next((one for one in needs if one["use"] == use), None)
    if need is None:
        return "not known"
    return _size(need["bytes"]) + {True: " fits", False: " too large", None: ""}[need["fits"]]


def _size(count: int) -> str:
    return f"{count / 2**30:,.1f} GB" if count >= 1 << 30 else f"{count / 2**20:,.1f} MB"
