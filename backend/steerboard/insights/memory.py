"""How much memory a run that no one has started would need of a device, and what the pools' workers have."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset
from steerboard.insights.schemas import PoolMemory, RoleMemory
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.playground.claims import POOL as INTERACTIVE
from steerboard.registry.architecture import architecture_of
from steerboard.registry.tables import Model
from steerboard.runs.tables import WorkerRow
from steerboard_contracts.fields import Precision, planned_bf16
from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.planning.memory import (
    MemoryEstimate,
    ModelShape,
    generation_memory,
    scoring_memory,
    training_memory,
)
from steerboard_contracts.planning.placement_plan import Machines, placed, training_load
from steerboard_contracts.run_config import RunConfig
from steerboard_contracts.run_kinds.academic import AcademicConfig
from steerboard_contracts.run_kinds.benchmark import BenchmarkConfig
from steerboard_contracts.run_kinds.generate import GenerateConfig
from steerboard_contracts.run_kinds.score import ScoreConfig
from steerboard_contracts.run_kinds.select import SelectConfig
from steerboard_contracts.training import TrainingConfig

# What is left of a device when a run may take it: estimates are not exact, and others need a little too.
SHARE = 0.9
ALIVE_SECONDS = 60
# A model's window, where its registry entry does not say.
WINDOW = 2048


class _Pool(NamedTuple):
    """A pool by its weakest worker: `devices` of each of its nodes, `memory` in bytes of one."""

    name: str
    on_gpu: bool
    nodes: int
    devices: int
    memory: int | None


def needed(
    session: Session, store: ArtifactStore, config: RunConfig, things: Mapping[str, Dataset | Model]
) -> list[PoolMemory]:
    """One entry a pool with living workers; without any, one for a GPU of unknown size. Empty where the model's shape
    is unknown, or the kind of run has no estimate."""
    judge = None if isinstance(config, TrainingConfig) else things.get("reward") or things.get("judge")
    model = judge or things.get("model")
    if not isinstance(model, Model):
        return []
    shape = _shape(session, store, model)
    if shape is None:
        return []
    window = int(model.info.get("max_length") or WINDOW)
    needs = []
    for pool in _pools(session) or [_Pool("default", True, 1, 1, None)]:
        processes = _processes(config, pool)
        estimate = _estimate(config, things, shape, window, pool.on_gpu, processes)
        if estimate is None:
            return []
        fits = None if pool.memory is None else estimate.total <= SHARE * pool.memory
        pool_memory = PoolMemory(
            pool=pool.name,
            on_gpu=pool.on_gpu,
            processes=processes,
            device_bytes=pool.memory,
            bytes=estimate.total,
            parts=estimate,
            fits=fits,
        )
        needs.append(_placed(pool_memory, config, things, shape, window, pool))
    return needs


def _placed(
    pool_memory: PoolMemory, config: RunConfig, given: Container[str], shape: ModelShape, window: int, pool: _Pool
) -> PoolMemory:
    """The memory with what each role needs, where some have GPUs of their own."""
    if not (isinstance(config, OnlineConfig) and config.placement.apart and pool.on_gpu and pool.memory):
        return pool_memory
    machines = Machines(nodes=pool.nodes, devices=pool.devices, device_bytes=pool.memory)
    planned = placed(config, shape, machines, given, window)
    roles = [
        RoleMemory(role=role.role, devices=role.devices, bytes=role.needs.total, parts=role.needs, fits=role.fits)
        for role in planned.roles
    ]
    return pool_memory.model_copy(update={"roles": roles, "problem": planned.problem, "fits": planned.fits})


def _processes(config: RunConfig, pool: _Pool) -> int:
    """The number of processes that compute together."""
    every = pool.devices * pool.nodes
    if not (isinstance(config, OnlineConfig) and pool.on_gpu):
        return every
    wide = config.vllm.tensor_parallel if config.engine == "vllm" else 1
    return max(1, every - sum(unit.devices for unit in config.placement.units(wide)))


def _estimate(
    config: RunConfig,
    given: Mapping[str, Dataset | Model],
    shape: ModelShape,
    window: int,
    on_gpu: bool,
    processes: int,
) -> MemoryEstimate | None:
    precision: Precision = getattr(config, "precision", "auto")
    mixed = planned_bf16(precision, on_gpu)
    if isinstance(config, TrainingConfig):
        models = {name: thing for name, thing in given.items() if isinstance(thing, Model)}
        sizes = {name: int(size) for name, model in models.items() if (size := model.info.get("parameters"))}
        load = training_load(config, shape, given, window, processes, on_gpu, sizes)
        return training_memory(shape, load)
    if isinstance(config, GenerateConfig | AcademicConfig) and config.engine == "transformers":
        return generation_memory(shape, sequences=config.batch_size, tokens=window, mixed=mixed, on_gpu=on_gpu)
    if isinstance(config, ScoreConfig | SelectConfig | BenchmarkConfig):
        return scoring_memory(shape, positions=max(config.batch_tokens, window), mixed=mixed, on_gpu=on_gpu)
    return None


def _shape(session: Session, store: ArtifactStore, model: Model) -> ModelShape | None:
    """The shape from the model's own config.json; None where it cannot be read: an estimate is not worth an error."""
    config = architecture_of(session, store, model)
    shape = ModelShape.of(config, int(model.info.get("parameters") or 0)) if config is not None else None
    if shape is not None and model.info.get("lora"):  # merged first, and then no longer what was stored
        return shape.model_copy(update={"bf16": False})
    return shape


def _pools(session: Session) -> list[_Pool]:
    fresh = func.clock_timestamp() - func.make_interval(0, 0, 0, 0, 0, 0, ALIVE_SECONDS)
    pools: dict[str, _Pool] = {}
    rows = session.execute(
        select(WorkerRow.pool, WorkerRow.devices)
        # The playground's worker takes no runs.
        .where(WorkerRow.heartbeat_at > fresh, WorkerRow.pool != INTERACTIVE)
        .order_by(WorkerRow.pool)
    )
    for pool, devices in rows:
        count = max(1, len(devices.get("ids") or []))
        candidate = _Pool(pool, bool(devices.get("gpus")), int(devices.get("nodes", 1)), count, devices.get("memory"))
        if pool not in pools or (candidate.memory or 0) < (pools[pool].memory or 0):
            pools[pool] = candidate
    return list(pools.values())
