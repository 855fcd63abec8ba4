"""The devices on which the roles of an online run work: those that train, or further ones of the same worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field, model_validator

from steerboard_contracts.errors import BadInput
from steerboard_contracts.fields import Config

Role = Literal["rollout", "rewards", "reference"]
ROLES: tuple[Role, ...] = get_args(Role)
# The roles of models that do not change.
MODEL_ROLES: tuple[Role, ...] = ("rewards", "reference")
# What the nodes of a run know each other by, in the environment of a stage.
TOKEN_VARIABLE = "RAY_AUTH_TOKEN"
# How long the first node waits for the others, and they for it, before a run's attempt is given up.
MEET_SECONDS = 300
# The most engines or copies of a role; no worker has more devices.
_MOST = 4096

_Copies = Annotated[int, Field(ge=0, le=_MOST)]


class Placement(Config):
    """How many engines or copies of each role have devices of their own. 0: the role works on those that train. The
    policy and a critic learn in the same steps, and always share theirs."""

    rollout: Annotated[
        _Copies,
        Field(description="Engines that sample; each takes one device, or `vllm.tensor_parallel` of them with vLLM."),
    ] = 0
    rewards: Annotated[_Copies, Field(description="Devices for reward models; each holds all of them.")] = 0
    reference: Annotated[_Copies, Field(description="Devices for the reference model; each holds a copy.")] = 0

    @model_validator(mode="before")
    @classmethod
    def _colocated(cls, given: Any) -> Any:
        return {} if given == "colocated" else given

    @property
    def apart(self) -> bool:
        return any(self.copies(role) for role in ROLES)

    def copies(self, role: Role) -> int:
        return int(getattr(self, role))

    def units(self, tensor_parallel: int = 1) -> list[Unit]:
        """The largest first. `tensor_parallel`: devices of a rollout engine."""
        return [
            Unit(role=role, number=number, devices=tensor_parallel if role == "rollout" else 1)
            for role in ROLES
            for number in range(self.copies(role))
        ]


class Unit(BaseModel, frozen=True):
    """One engine or copy of a role."""

    role: Role
    number: int
    devices: int = 1

    @property
    def name(self) -> str:
        return f"{self.role} {self.number + 1}"


class NodeShare(BaseModel, frozen=True):
    """What a node does: its first `training` devices train, the next ones are those of `units`, in this order. A
    processor counts as one device that trains, and has room for any units."""

    training: int
    units: tuple[Unit, ...] = ()


class RoleNodes(BaseModel):
    """`nodes` of a run with roles apart, of which this one is number `node`. `devices`: this node's for units;
    `takes_devices`: whether units take any, which they do not where the nodes only have processors. `address` is where
    the nodes meet; empty for one alone."""

    nodes: list[NodeShare]
    node: int = 0
    devices: list[str] = []
    takes_devices: bool = False
    address: str = ""


def assign(units: Sequence[Unit], nodes: int, devices: int) -> list[NodeShare]:
    """Which node does what. devices: GPUs of each node; 0 where they only have processors.

    Units come to the last nodes, so that the first ones train. A unit never spans nodes.

    Raises `BadInput` (`placement_does_not_fit`).
    """
    if devices == 0:
        return _on_processors(units, nodes)
    free = [devices] * nodes
    placed: list[list[Unit]] = [[] for _ in range(nodes)]
    for unit in sorted(units, key=lambda unit: -unit.devices):
        # The first node always trains.
        room = [free[node] - (node == 0) for node in range(nodes)]
        node = next((at for at in reversed(range(nodes)) if room[at] >= unit.devices), None)
        if node is None:
            raise _does_not_fit(units, nodes, devices)
        free[node] -= unit.devices
        placed[node].append(unit)
    return [NodeShare(training=free[node], units=tuple(placed[node])) for node in range(nodes)]


def _on_processors(units: Sequence[Unit], nodes: int) -> list[NodeShare]:
    helpers = min(nodes - 1, len(units))
    if helpers == 0:
        return [NodeShare(training=1, units=tuple(units) if node == 0 else ()) for node in range(nodes)]
    training = [NodeShare(training=1)] * (nodes - helpers)
    return [*training, *(NodeShare(training=0, units=tuple(units[at::helpers])) for at in range(helpers))]


def _does_not_fit(units: Sequence[Unit], nodes: int, devices: int) -> BadInput:
    counts = {role: [unit for unit in units if unit.role == role] for role in ROLES}
    parts = [f"{role} {len(of)} x {of[0].devices}" for role, of in counts.items() if of]
    return BadInput(
        f"the placement takes {sum(unit.devices for unit in units)} devices ({', '.join(parts)}) besides at least one "
        f"that trains: {nodes} x {devices} have no room for it",
        code="placement_does_not_fit",
        hint="Place fewer copies apart, lower vllm.tensor_parallel to what one node has, or use more nodes.",
    )
