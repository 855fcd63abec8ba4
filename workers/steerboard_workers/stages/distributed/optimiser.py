"""AdamW, and what of it and of the weights must survive a run's end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.training import TrainingConfig
from steerboard_workers.alignment.modules import JointModule

# By part of a `JointModule`, what multiplies its learning rate.
Rates = Mapping[str, float]
ALIKE: Rates = {}
MOMENTS = ("exp_avg", "exp_avg_sq")
WEIGHT = "weight"


class BadCheckpoint(SteerboardError):
    """A checkpoint's weights do not match the model that should resume from it."""

    code = "bad_checkpoint"
    title = "The checkpoint does not fit the model"


def adamw(module: nn.Module, config: TrainingConfig, rates: Rates = ALIKE) -> torch.optim.AdamW:
    """AdamW in its fused form; norms and biases are not decayed. A group's `scale` multiplies the learning rate."""
    groups: list[dict[str, Any]] = []
    parts = dict(module.parts.items()) if isinstance(module, JointModule) else {JointModule.MAIN: module}
    for name, part in parts.items():
        learned = [p for p in part.parameters() if p.requires_grad]
        scale = rates.get(name, 1.0)
        decayed = [p for p in learned if dimensions(p) >= 2]
        others = [p for p in learned if dimensions(p) < 2]
        groups.append({"params": decayed, "weight_decay": config.weight_decay, "scale": scale, "part": name})
        groups.append({"params": others, "weight_decay": 0.0, "scale": scale, "part": name})
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=config.lr,
        betas=(config.adam_beta1, config.adam_beta2),
        fused=True,
    )


def rescale(groups: Iterable[dict[str, Any]], rates: Rates) -> None:
    """Other rates for the groups of an optimiser that `adamw` made."""
    for group in groups:
        group["scale"] = rates.get(group["part"], 1.0)


def set_lr(groups: Iterable[dict[str, Any]], lr: float, held: Collection[str] = ()) -> None:
    """Sets the rate of the next step in the groups of an optimiser that `adamw` made. It is 0 for parts that are
    `held`: AdamW's decay is a share of the rate, so that their weights stay as they are."""
    for group in groups:
        group["lr"] = 0.0 if group["part"] in held else lr * group["scale"]


def dimensions(parameter: nn.Parameter) -> int:
    """The dimensions of the whole parameter: what ZeRO-3 has spread over processes is flat and empty here."""
    return len(getattr(parameter, "ds_shape", parameter.shape))


def trained(module: nn.Module) -> dict[str, nn.Parameter]:
    """Parameters that training changes, by name, tied ones once."""
    return {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}


def key(what: str, name: str) -> str:
    """How a checkpoint names the weight or a moment of parameter `name`."""
    return f"{what}.{name}"


def parted(of: str, own: dict[str, nn.Parameter]) -> tuple[str, nn.Parameter]:
    """What a checkpoint's key names, and the parameter that it is of. Raises `BadCheckpoint`."""
    what, _, name = of.partition(".")
    if name not in own or what not in (WEIGHT, *MOMENTS):
        raise BadCheckpoint(f"the checkpoint holds {of}, which this model lacks")
    return what, own[name]


def check_complete(keys: set[str], own: dict[str, nn.Parameter]) -> None:
    """Raises `BadCheckpoint` unless every trained weight is among a checkpoint's keys."""
    absent = [name for name in own if key(WEIGHT, name) not in keys]
    if absent:
        raise BadCheckpoint(f"the checkpoint lacks {len(absent)} weights of this model, such as {absent[0]}")


def first_state(like: Tensor) -> dict[str, Tensor]:
    """AdamW's state of one tensor before its first step: moments of its shape, and the scalar `step`."""
    moments = {name: torch.zeros_like(like) for name in MOMENTS}
    return {"step": torch.tensor(0.0, device=like.device), **moments}
