"""Whether a model that is not here yet has room on the workers: in training, with adapters, and in decoding.

The estimates are those of the launch forms, with the settings that a run has by default.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.insights.memory import ALIVE_SECONDS, SHARE, WINDOW
from steerboard.insights.schemas import FitNeed, FitRequest, ModelFit, WorkerFit
from steerboard.playground.claims import POOL as INTERACTIVE
from steerboard.registry.hub_models import HubModel, hub_model
from steerboard.runs.tables import WorkerRow
from steerboard_contracts.errors import BadInput
from steerboard_contracts.files.base_sources import source_type
from steerboard_contracts.lora import LoraConfig
from steerboard_contracts.planning.memory import ModelShape, TrainingLoad, generation_memory, training_memory
from steerboard_contracts.run_kinds.generate import GenerateConfig
from steerboard_contracts.training import TrainingConfig

_LONGEST_WINDOW = 4096  # of a base that comes in, unless its own steerboard.json has another
_SEQUENCES = int(GenerateConfig.model_fields["batch_size"].default)
_POSITIONS = int(TrainingConfig.model_fields["micro_tokens"].default)


class Worker(NamedTuple):
    """`devices` as the worker reports them."""

    name: str
    pool: str
    devices: Mapping[str, Any]


def looked_up(request: FitRequest, token: str | None = None) -> HubModel:
    """What is known of the model. Asks the hub, which may take its time, unless the facts are given. `token`: the
    project's own.

    Raises as `hub_model` does, and `BadInput` (`unknown_model`) for another source than a hub name.
    """
    if request.facts is not None:
        return HubModel(request.facts, "", None, False)
    source = request.source or ""
    if source_type(source) != "hub":
        raise BadInput(
            f"{source[:200]!r} is not a name on the hub",
            code="unknown_model",
            hint="Write org/name, org/name@revision or org/name:file.gguf; `steerboard models fit` checks folders.",
        )
    return hub_model(source, token=token)


def living_workers(session: Session) -> list[Worker]:
    """The workers that take runs, by pool."""
    fresh = func.clock_timestamp() - dt.timedelta(seconds=ALIVE_SECONDS)
    rows = session.execute(
        select(WorkerRow.name, WorkerRow.pool, WorkerRow.devices)
        .where(WorkerRow.heartbeat_at > fresh, WorkerRow.pool != INTERACTIVE)
        .order_by(WorkerRow.pool, WorkerRow.name)
    )
    return [Worker(*row) for row in rows]


def fit(model: HubModel, workers: Iterable[Worker]) -> ModelFit:
    """The model against each of the workers."""
    facts = model.facts
    shape = ModelShape.of(facts.config, facts.counted())
    window = min(facts.window or WINDOW, _LONGEST_WINDOW)
    return ModelFit(
        revision=model.revision or None,
        file=model.file,
        gated=model.gated,
        architecture=facts.architecture,
        parameters=(shape.parameters if shape else facts.counted()) or None,
        files=facts.files,
        size=facts.size,
        weights=facts.weights,
        quantised=facts.quantised,
        template=facts.template,
        licence=facts.licence,
        window=facts.window,
        workers=[_on(worker, shape, window) for worker in workers],
    )


def _on(worker: Worker, shape: ModelShape | None, window: int) -> WorkerFit:
    devices = worker.devices
    memory = devices.get("memory")
    on_gpu = bool(devices.get("gpus"))
    needs = []
    if shape is not None:
        processes = max(1, len(devices.get("ids") or [])) * int(devices.get("nodes", 1))
        load = TrainingLoad(processes=processes, positions=max(_POSITIONS, window), mixed=on_gpu, on_gpu=on_gpu)
        adapters = load.model_copy(update={"trained": shape.adapters(LoraConfig())})
        decoding = generation_memory(shape, sequences=_SEQUENCES, tokens=window, mixed=on_gpu, on_gpu=on_gpu)
        for use, estimate in (
            ("training", training_memory(shape, load)),
            ("lora", training_memory(shape, adapters)),
            ("inference", decoding),
        ):
            fits = None if memory is None else estimate.total <= SHARE * memory
            needs.append(FitNeed.model_validate({"use": use, "bytes": estimate.total, "fits": fits}))
    return WorkerFit(name=worker.name, pool=worker.pool, on_gpu=on_gpu, device_bytes=memory, needs=needs)
