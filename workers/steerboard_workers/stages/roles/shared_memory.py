"""Memory of a node through which processes of different roles give each other what is large."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import psutil

from steerboard_contracts.errors import OutOfMemory
from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.placement import RoleNodes
from steerboard_workers.stages.models.model_io import pick_device, pick_dtype
from steerboard_workers.stages.runtime import Stage

_SHARED = Path("/dev/shm")
_LIMIT = Path("/sys/fs/cgroup/memory.max")
# For examples and answers.
_OTHERS = 256 << 20
# For weights that are let go while the next ones come.
_ROOM = 1.25


def store_bytes(stage: Stage, roles: RoleNodes) -> int:
    """The bytes that this node needs: weights as they are sent, where it sends or receives any, and examples.

    Raises `OutOfMemory` where the machine does not have so much."""
    needed = _OTHERS
    config = stage.spec.config
    assert isinstance(config, OnlineConfig)
    here = roles.nodes[roles.node]
    if config.placement.rollout and (roles.node == 0 or any(unit.role == "rollout" for unit in here.units)):
        each = pick_dtype(config.precision, pick_device(stage.spec.device)).itemsize
        needed += int(_ROOM * each * parameters(stage.model_path("model")))
    check_room(needed, roles.node)
    return needed


def parameters(folder: Path) -> int:
    """Numbers in a model's files, in whatever precision: each file begins with the shapes of what it holds."""
    return sum(_numbers(path) for path in folder.rglob("*.safetensors"))


def check_room(needed: int, node: int) -> None:
    """Raises `OutOfMemory`."""
    shared = shutil.disk_usage(_SHARED).free
    if needed > shared:
        raise OutOfMemory(
            f"node {node} needs {_mb(needed)} of shared memory for the weights that go to engines apart, and "
            f"{_SHARED} has {_mb(shared)} free",
            hint="Give the container more of it (--shm-size, or a volume of medium Memory).",
        )
    left = min(psutil.virtual_memory().available, _limit())
    if needed > left:
        raise OutOfMemory(
            f"node {node} needs {_mb(needed)} of memory for the weights that go to engines apart, and has {_mb(left)}",
            hint="Use a machine with more, or sample on the devices that train (placement.rollout 0).",
        )


def _limit() -> float:
    try:
        return int(_LIMIT.read_text())
    except (OSError, ValueError):
        return math.inf  # there is no such group, or its limit is `max`


def _numbers(path: Path) -> int:
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return sum(math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")


def _mb(number: float) -> str:
    return f"{int(number) >> 20:,} MB"
