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
    method: Annotated[str, typer.Option(help="A method that samples during training.")],
    model: Annotated[str, typer.Option(help="8b, 70b, or a folder or file with a model's config.json.")] = "8b",
    nodes: Annotated[int, typer.Option(min=1, help="Machines per worker.")] = 1,
    devices: Annotated[int, typer.Option(min=1, help="GPUs per machine.")] = 8,
    gib: Annotated[float, typer.Option(min=1, help="Memory per GPU, in GiB.")] = 74.5,
    window: Annotated[int, typer.Option(min=16, help="Tokens of prompt and answer combined.")] = _WINDOW,
    rewards: Annotated[int, typer.Option(min=0, max=3, help="Number of reward models; 0 for rewards by rule.")] = 1,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Set a field of the method, such as placement.rollout=2; may be repeated."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Estimate the memory of an online run by role, whether it fits, and what to change. Needs no server. Exits with 1
    if it does not fit."""
    # Imported here: no other command waits for it.
    from steerboard_contracts.methods import methods, needed_method
    from steerboard_contracts.online_config import OnlineConfig
    from steerboard_contracts.planning.memory import ModelShape
    from steerboard_contracts.planning.placement_plan import Machines, plan

    shape = ModelShape.of(_config_of(model))
    if shape is None:
        raise BadInput(f"{model} does not describe a plain decoder", code="unknown_model")
    spec = needed_method(method)
    given = config_of(set_ or [], {"method": method})
    try:
        config = spec.config.model_validate(given)
    except ValidationError as error:
        wrong = [
            ErrorLocation(location=".".join(map(str, fault.place)) or method, message=fault.message)
            for fault in complaints(error, given, spec.config)
        ]
        raise BadInput("the settings cannot be used", code="bad_config", errors=wrong) from error
    if not isinstance(config, OnlineConfig):
        online = [name for name, named_method in methods().items() if named_method.online]
        raise BadInput(
            f"{method} does not sample in training",
            code="bad_config",
            hint=f"Its launch form shows how much memory it needs; methods that sample: {', '.join(online)}.",
        )
    models = [scorer.name for scorer in spec.frozen if scorer.role == "rewards"][:rewards]
    machines = Machines(nodes=nodes, devices=devices, device_bytes=int(gib * _GIB))
    placed = plan(config, shape, machines, {"model", "data", *models}, window)
    if json:
        print_json({**placed.model_dump(mode="json"), "fits": placed.fits, "parameters": shape.parameters})
    else:
        _show(placed, shape.parameters)
    if not placed.fits:
        sys.exit(EXIT_FAILED)


def _config_of(model: str) -> dict[str, Any]:
    if model in _SIZES:
        return _SIZES[model]
    path = Path(model)
    path = path / "config.json" if path.is_dir() else path
    try:
        config = json_files.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadInput(
            f"{path} cannot be read as a model's config: {error}",
            code="unknown_model",
            hint=f"Give {', '.join(_SIZES)}, or a folder with config.json.",
        ) from error
    return config if isinstance(config, dict) else {}


def _show(placed: PlacementPlan, parameters: int) -> None:
    machines = placed.machines
    note(
        f"{parameters:,} parameters on {machines.nodes} x {machines.devices} devices of "
        f"{machines.device_bytes / _GIB:g} GiB; an estimate of each device, in GiB"
    )
    if placed.problem is not None:
        note(f"not possible: {placed.problem}")
    rows = [
        (
            role.role,
            role.devices,
            *(_gib(getattr(role.needs, part)) for part in _PARTS),
            _gib(role.needs.total),
            _gib(role.room),
            _verdict(role),
        )
        for role in placed.roles
    ]
    print_table(console(), _COLUMNS, rows, heading=True)
    host = sum(role.needs.host for role in placed.roles)
    if host:
        note(f"also {host / _GIB:.1f} GiB of host memory for each process that trains")
    if placed.host:
        note(f"also {placed.host / _GIB:.1f} GiB of the memory of the first node and of each with engines, for weights")
    if placed.fits:
        return
    if placed.changes is None:
        note("none of the tried settings makes it fit; use a smaller model, lora, or larger devices")
    else:
        note("it would fit with " + ", ".join(f"{name} {value}" for name, value in placed.changes.items()))


def _verdict(role: PlacedRole) -> str:
    if not role.fits:
        return f"no, {(role.needs.total - role.room) / _GIB:.1f} too much"
    return "yes" if role.sequences is None else f"yes, {role.sequences} full windows"
