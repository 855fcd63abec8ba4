"""What each device of an online run has to hold, on machines that need not be there: what fits where, and what to
change. Sums of `steerboard_contracts.planning.memory`; frozen models count as large as the model in training."""

from __future__ import annotations

import itertools
from collections.abc import Container, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from steerboard_contracts.errors import BadInput
from steerboard_contracts.fields import planned_bf16
from steerboard_contracts.methods import needed_method
from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.placement import MODEL_ROLES, Role, assign
from steerboard_contracts.planning.memory import (
    MemoryEstimate,
    ModelShape,
    TrainingLoad,
    cache_bytes,
    generation_memory,
    scoring_memory,
    training_memory,
)
from steerboard_contracts.specs.method import MethodSpec
from steerboard_contracts.training import TrainingConfig

# What an estimate may take of a device before it counts as too much.
SHARE = 0.9
# Positions of a pass of a frozen model.
_PASS = 2048
# Bytes that another process takes of a device before it has anything there.
CONTEXT = 1 << 30
# How far advice goes.
_MOST_NODES = 64


class Machines(BaseModel):
    """Equal nodes with equal GPUs."""

    nodes: int
    devices: int
    device_bytes: int


class PlacedRole(BaseModel):
    """What one device of a role holds. `room`: what it may hold. `sequences`: for how many whole windows an engine's
    cache has room."""

    role: Literal["training", "rollout", "rewards", "reference"]
    devices: int
    needs: MemoryEstimate
    room: int
    sequences: int | None = None

    @property
    def fits(self) -> bool:
        return self.needs.total <= self.room


class PlacementPlan(BaseModel):
    """`host`: bytes of the memory of the machines through which engines apart get the weights, of the first node and of
    each that has such an engine. `problem`: why there is no such placement; `changes`: by field, with which it would
    fit; None where nothing that was tried does."""

    machines: Machines
    roles: list[PlacedRole] = []
    host: int = 0
    problem: str | None = None
    changes: dict[str, Any] | None = None

    @property
    def fits(self) -> bool:
        return self.problem is None and all(role.fits for role in self.roles)


def beyond(method: MethodSpec, config: TrainingConfig, sizes: Mapping[str, int], own: int) -> int:
    """Parameters that the frozen models have together beyond as many models of `own` parameters. sizes: parameters of
    inputs by name, where they are known; others are taken to be as large as the model to train."""
    return sum(sizes.get(name, own) - own for name in method.kept_names(config, sizes))


def training_load(
    config: TrainingConfig,
    shape: ModelShape,
    given: Container[str],
    window: int,
    processes: int,
    on_gpu: bool,
    sizes: Mapping[str, int] | None = None,
) -> TrainingLoad:
    """`given`: names of the run's inputs; `window`: of the model, in tokens; `sizes` as for `beyond`."""
    method = needed_method(config.method)
    return TrainingLoad(
        processes=processes,
        # No pass is smaller than one sample, and a pair is two sequences.
        positions=max(config.micro_tokens, method.sequences * (config.max_length or window)),
        mixed=planned_bf16(config.precision, on_gpu),
        strategy=config.strategy,
        offload=config.offload,
        gradient_checkpointing=config.gradient_checkpointing,
        trained=shape.adapters(config.lora) if config.lora else None,
        quantised=config.lora is not None and config.lora.quantise != "none",
        adapts_experts=config.lora is not None and config.lora.targets == "experts",
        on_gpu=on_gpu,
        reads_logits=method.reads == "labels",
        # vLLM has its own share of the memory, and what samples apart its own devices.
        sampled=config.sample_batch if isinstance(config, OnlineConfig) and not config.samples_apart else 0,
        samples_apart=isinstance(config, OnlineConfig) and config.samples_apart and not config.placement.rollout,
        window=config.max_length or window,
        further=len(method.also_trains),
        frozen=method.kept(config, given),
        frozen_beyond=beyond(method, config, sizes or {}, shape.parameters),
    )


def plan(
    config: OnlineConfig, shape: ModelShape, machines: Machines, given: Container[str], window: int
) -> PlacementPlan:
    """What each device holds; with `changes` where that is too much."""
    placement = placed(config, shape, machines, given, window)
    if placement.fits:
        return placement
    return placement.model_copy(update={"changes": _changes(config, shape, machines, given, window)})


def placed(
    config: OnlineConfig, shape: ModelShape, machines: Machines, given: Container[str], window: int
) -> PlacementPlan:
    """What each device holds, without advice."""
    wide = config.vllm.tensor_parallel if config.engine == "vllm" else 1
    try:
        shares = assign(config.placement.units(wide), machines.nodes, machines.devices)
    except BadInput as error:
        return PlacementPlan(machines=machines, problem=error.detail)
    training = sum(share.training for share in shares)
    if config.engine == "vllm" and not config.placement.rollout and wide > 1:
        problem = f"an engine over {wide} devices needs devices of its own (placement.rollout)"
        return PlacementPlan(machines=machines, problem=problem)
    length = config.max_length or window
    room = int(SHARE * machines.device_bytes)
    load = training_load(config, shape, given, window, training, on_gpu=True)
    needs = training_memory(shape, load)
    roles = [PlacedRole(role="training", devices=training, needs=needs, room=room)]
    if config.engine == "vllm" and not config.placement.rollout:
        # While it samples, what is learned stays where it is; a step needs its room too where it is made meanwhile.
        meanwhile = needs if config.staleness else needs.model_copy(update={"activations": 0, "logits": 0})
        left = machines.device_bytes - meanwhile.total - CONTEXT
        roles.append(_engine(config, shape, length, machines, training, max(0, left)))
    if config.placement.rollout:
        roles.append(_rollout(config, shape, length, machines, load.mixed))
    for role, count in _frozen(config, given).items():
        if config.placement.copies(role) and count:
            roles.append(_copies(role, config.placement.copies(role), count, shape, length, load.mixed, room))
    host = shape.parameters * (2 if load.mixed else 4) if config.placement.rollout else 0
    return PlacementPlan(machines=machines, roles=roles, host=host)


def _rollout(config: OnlineConfig, shape: ModelShape, length: int, machines: Machines, mixed: bool) -> PlacedRole:
    count = config.placement.rollout
    if config.engine == "vllm":
        devices = count * config.vllm.tensor_parallel
        return _engine(config, shape, length, machines, devices, machines.device_bytes)
    needs = generation_memory(shape, sequences=config.sample_batch, tokens=length, mixed=mixed)
    return PlacedRole(role="rollout", devices=count, needs=needs, room=int(SHARE * machines.device_bytes))


def _engine(
    config: OnlineConfig, shape: ModelShape, length: int, machines: Machines, devices: int, room: int
) -> PlacedRole:
    """vLLM on `devices`, with at most `room` bytes on each. What its share of the memory leaves besides the weights is
    cache, which must hold one window."""
    wide = config.vllm.tensor_parallel
    part = shape.model_copy(update={"parameters": shape.parameters // wide})
    bare = generation_memory(part, sequences=1, tokens=1, mixed=True)
    taken = min(int(config.vllm.memory_fraction * machines.device_bytes), room)
    window = cache_bytes(shape, length, True) // wide
    left = taken - bare.total
    needs = bare.model_copy(update={"kv_cache": max(left, window)})
    if left < window:
        return PlacedRole(role="rollout", devices=devices, needs=needs, room=taken, sequences=0)
    return PlacedRole(role="rollout", devices=devices, needs=needs, room=room, sequences=left // window)


def _copies(role: Role, copies: int, models: int, shape: ModelShape, length: int, mixed: bool, room: int) -> PlacedRole:
    every = shape.model_copy(update={"parameters": models * shape.parameters})
    return PlacedRole(
        role=role, devices=copies, needs=scoring_memory(every, positions=max(_PASS, length), mixed=mixed), room=room
    )


def _frozen(config: OnlineConfig, given: Container[str]) -> dict[Role, int]:
    """How many models of each role stay in memory."""
    method = needed_method(config.method)
    nowhere = config.model_copy(update={"placement": type(config.placement)()})
    everything = method.kept(nowhere, given)
    parameters: dict[Role, int] = {}
    for role in MODEL_ROLES:
        apart = nowhere.model_copy(update={"placement": type(config.placement)(**{role: 1})})
        parameters[role] = everything - method.kept(apart, given)
    return parameters


def _changes(
    config: OnlineConfig, shape: ModelShape, machines: Machines, given: Container[str], window: int
) -> dict[str, Any] | None:
    """The fewest that make it fit: on these nodes, or else on the smallest multiple of them."""
    possible = _candidates(config, machines.devices)
    nodes = machines.nodes
    while nodes <= max(_MOST_NODES, machines.nodes):
        larger = machines.model_copy(update={"nodes": nodes})
        for changes, changed in possible:
            if placed(changed, shape, larger, given, window).fits:
                return changes if nodes == machines.nodes else {"nodes": nodes, **changes}
        nodes *= 2
    return None


def _candidates(config: OnlineConfig, devices: int) -> list[tuple[dict[str, Any], OnlineConfig]]:
    """Fewer changes first; of as many, those that cost less time."""
    wide = [size for size in (1, 2, 4, 8) if size <= devices]
    choices: list[list[dict[str, Any]]] = [
        [{}, {"gradient_checkpointing": True}],
        [{}, {"strategy": "zero2"}, {"strategy": "zero3"}],
        [
            {},
            {"engine": "vllm"},
            {"placement.rollout": 1},
            *({"engine": "vllm", "placement.rollout": 1, "vllm.tensor_parallel": size} for size in wide),
        ],
        [{}, {"placement.rewards": 0}, {"placement.rewards": 1}],
        [{}, {"placement.reference": 0}, {"placement.reference": 1}],
        [{}, {"offload": "optimiser"}, {"offload": "all"}],
    ]
    candidates = []
    for chosen in itertools.product(*choices):
        wanted = {name: value for option in chosen for name, value in option.items()}
        changes = {name: value for name, value in wanted.items() if value != _value(config, name)}
        changed = _changed(config, changes)
        if changed is not None:
            candidates.append((changes, changed))
    return sorted(candidates, key=lambda candidate: len(candidate[0]))


def _value(config: OnlineConfig, name: str) -> Any:
    value: Any = config
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _changed(config: OnlineConfig, changes: Mapping[str, Any]) -> OnlineConfig | None:
    """Returns None where its fields do not go together."""
    fields = config.model_dump()
    for name, value in changes.items():
        place, *parts = reversed(name.split("."))
        into = fields
        for part in reversed(parts):
            into = into[part]
        into[place] = value
    try:
        return type(config).model_validate(fields)
    except ValidationError:
        return None
