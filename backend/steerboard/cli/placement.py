"""`steerboard placement`: what each device of an online run would hold, on machines that need not be there."""

from __future__ import annotations

import json as json_files
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from steerboard.cli.output.console import EXIT_FAILED, JsonOption, console, note, print_json
from steerboard.cli.output.listing import Column, print_table
from steerboard.cli.settings import config_of
from steerboard_contracts.complaints import complaints
from steerboard_contracts.errors import BadInput, ErrorLocation

if TYPE_CHECKING:
    from steerboard_contracts.planning.placement_plan import PlacedRole, PlacementPlan

commands = typer.Typer()

_GIB = 1 << 30
_WINDOW = 4096
# Llama 3's, as their config.json has them.
_SIZES: dict[str, dict[str, Any]] = {
    "8b": {
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "vocab_size": 128256,
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
    },
}
_SIZES["70b"] = _SIZES["8b"] | {
    "hidden_size": 8192,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "intermediate_size": 28672,
}
_PARTS = ("weights", "gradients", "optimiser", "activations", "logits", "kv_cache", "overhead")


def _gib(value: int) -> str:
    return f"{value / _GIB:.1f}"


_COLUMNS = (
    Column("role"),
    Column("devices", right=True),
    *(Column(name.replace("_", " "), drop=len(_PARTS) - place, right=True) for place, name in enumerate(_PARTS)),
    Column("total", right=True),
    Column("of", right=True),
    Column("fits"),
)


@commands.command()
def placement(
    method: Annotated[str, typer.Option(help="A method that samples in training.")],
    model: Annotated[str, typer.Option(help="8b, 70b, or a folder or file with a model's config.json.")] = "8b",
    nodes: Annotated[int, typer.Option(min=1, help="Machines of one worker.")] = 1,
    devices: Annotated[int, typer.Option(min=1, help="GPUs of each.")] = 8,
    gib: Annotated[float, typer.Option(min=1, help="Memory of each GPU.")] = 74.5,
    window: Annotated[int, typer.Option(min=16, help="Tokens of prompt and answer together.")] = _WINDOW,
    rewards: Annotated[int, typer.Option(min=0, max=3, help="Reward models; the others give rewards by rule.")] = 1,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="A field of the method, such as placement.rollout=2; may be repeated."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Memory of an online run by role, whether it fits, and what to change. An estimate, with no server; exit code 1
    where it does not fit."""
    # Imported here: no other command waits for it.
    from steerboard_contracts.methods import methods, needed_method
    from steerboard_contracts.planning.memory import ModelShape
    from steerboard_contracts.planning.placement_plan import Machines, plan
    from steerboard_contracts.training import OnlineConfig

    shape = ModelShape.of(_config_of(model))
    if shape is None:
        raise BadInput(f"{model} does not describe a plain decoder", code="unknown_model")
    spec = needed_method(method)
    given = config_of(set_ or [], {"method": method})
    try:
        config = spec.config.model_validate(given)
    except ValidationError as error:
        wrong = [
            ErrorLocation(location=".".join(map(str, one.place)) or method, message=one.message)
            for one in complaints(error, given, spec.config)
        ]
        raise BadInput("the settings cannot be used", code="bad_config", errors=wrong) from error
    if not isinstance(config, OnlineConfig):
        online = [name for name, one in methods().items() if one.online]
        raise BadInput(
            f"{method} does not sample in training",
            code="bad_config",
            hint=f"Its launch form shows how much memory it needs; methods that sample: {', '.join(online)}.",
        )
    models = [one.name for one in spec.frozen if one.role == "rewards"][:rewards]
    machines = Machines(nodes=nodes, devices=devices, device_bytes=int(gib * _GIB))
    found = plan(config, shape, machines, {"model", "data", *models}, window)
    if json:
        print_json({**found.model_dump(mode="json"), "fits": found.fits, "parameters": shape.parameters})
    else:
        _show(found, shape.parameters)
    if not found.fits:
        sys.exit(EXIT_FAILED)


def _config_of(model: str) -> dict[str, Any]:
    if model in _SIZES:
        return _SIZES[model]
    path = Path(model)
    path = path / "config.json" if path.is_dir() else path
    try:
        found = json_files.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadInput(
            f"{path} cannot be read as a model's config: {error}",
            code="unknown_model",
            hint=f"Give {', '.join(_SIZES)}, or a folder with config.json.",
        ) from error
    return found if isinstance(found, dict) else {}


def _show(found: PlacementPlan, parameters: int) -> None:
    machines = found.machines
    note(
        f"{parameters:,} parameters on {machines.nodes} x {machines.devices} devices of "
        f"{machines.device_bytes / _GIB:g} GiB; an estimate of each device, in GiB"
    )
    if found.problem is not None:
        note(f"not possible: {found.problem}")
    rows = [
        (
            one.role,
            one.devices,
            *(_gib(getattr(one.needs, part)) for part in _PARTS),
            _gib(one.needs.total),
            _gib(one.room),
            _verdict(one),
        )
        for one in found.roles
    ]
    print_table(console(), _COLUMNS, rows, heading=True)
    host = sum(one.needs.host for one in found.roles)
    if host:
        note(f"also {host / _GIB:.1f} GiB of the host's memory for each process that trains")
    if found.host:
        note(f"also {found.host / _GIB:.1f} GiB of the memory of the first node and of each with engines, for weights")
    if found.fits:
        return
    if found.changes is None:
        note("none of the tried settings makes it fit; a smaller model, lora, or larger devices would")
    else:
        note("it would fit with " + ", ".join(f"{name} {value}" for name, value in found.changes.items()))


def _verdict(one: PlacedRole) -> str:
    if not one.fits:
        return f"no, {(one.needs.total - one.room) / _GIB:.1f} too much"
    return "yes" if one.sequences is None else f"yes, {one.sequences} full windows"
