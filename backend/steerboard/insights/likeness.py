"""How earlier runs compare with a new one: in work, length of texts, size of models and kind of device."""

from __future__ import annotations

import math
import statistics
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset
from steerboard.playground.claims import POOL as INTERACTIVE
from steerboard.registry.tables import Model
from steerboard.runs.device_kinds import device_kind
from steerboard.runs.ledger import ledgers
from steerboard.runs.tables import Run, RunAttempt, WorkerRow
from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.run_config import RunConfig
from steerboard_contracts.watching.ledger import Phase
from steerboard_statistics.prediction import ScaledRun

_ALIVE_SECONDS = 60
# The phases whose time grows with the rows. Opening models, for one, takes as long for few rows as for many.
_GROWS: tuple[Phase, ...] = ("data", "generate", "score", "reference", "value", "update", "sync", "evaluate")


@dataclass(frozen=True)
class Traits:
    """`work` in the unit of the run's kind. `characters` of a row and `parameters` of a model: means, None where they
    are not known. `data` and `models`: hashes of their contents. `max_length`: tokens that the config leaves of a row.
    `tokens` of a row in the mean, and whether rows were `cut`, are known of finished runs."""

    work: float
    characters: float | None
    parameters: float | None
    data: frozenset[str]
    models: frozenset[str]
    max_length: int | None = None
    tokens: float | None = None
    cut: bool = False

    @classmethod
    def of(
        cls,
        work: float,
        things: Mapping[str, Dataset | Model],
        config: RunConfig,
        summary: Mapping[str, Any] | None = None,
    ) -> Traits:
        """`summary`: of a finished run."""
        datasets = [dataset for dataset in things.values() if isinstance(dataset, Dataset)]
        models = [model for model in things.values() if isinstance(model, Model)]
        return cls(
            work=work,
            characters=_mean([_characters(dataset) for dataset in datasets]),
            parameters=_mean([float(model.info.get("parameters") or 0) for model in models]),
            data=frozenset(dataset.content_hash for dataset in datasets),
            models=frozenset(model.artifact_hash for model in models),
            max_length=getattr(config, "max_length", None),
            tokens=_tokens(summary or {}),
            cut=_number(summary or {}, "too_long_rows") > 0,
        )


@dataclass(frozen=True)
class Timing:
    """`growing`: the seconds of `seconds` that grow with the work."""

    seconds: float
    growing: float
    device: str | None


def scaled(
    run: Traits, timing: Timing, new: Traits, *, reads_texts: bool, devices: Collection[str | None]
) -> ScaledRun:
    """`devices`: the kinds that the new run may get. Texts that are sampled have no length yet: the data shows
    little of it."""
    times = new.work / run.work
    known_texts = run.data == new.data
    if not known_texts and reads_texts and run.characters and new.characters:
        known_texts = True
        times *= new.characters / run.characters
    if run.max_length != new.max_length:
        # Rows that were cut have shown nothing of how long they are; others show what a smaller limit leaves at most.
        known_texts = known_texts and not run.cut
        if new.max_length is not None and run.tokens is not None:
            times *= min(1.0, new.max_length / run.tokens)
    larger = 1.0
    known_sizes = run.models == new.models
    if not known_sizes and run.parameters and new.parameters:
        known_sizes = True
        larger = new.parameters / run.parameters
    seconds = (timing.seconds - timing.growing) + timing.growing * times * larger
    return ScaledRun(
        seconds=seconds,
        factors=(abs(math.log(times)) + abs(math.log(larger))) * timing.growing / timing.seconds,
        known_texts=known_texts,
        known_sizes=known_sizes,
        known_device=timing.device is not None and set(devices) == {timing.device},
    )


def reads_texts(config: RunConfig) -> bool:
    """Whether what a run does is mostly to read the texts of its data, rather than to sample others."""
    return config.run not in ("generate", "evaluate") and not isinstance(config, OnlineConfig)


def timings(session: Session, runs: Sequence[Run]) -> dict[uuid.UUID, Timing]:
    """The timings by the id of the run; a run with parts or shards ran on the devices of these."""
    ids = [run.id for run in runs]
    rows = (
        select(func.coalesce(Run.parent_id, Run.id), RunAttempt.device)
        .join(Run, Run.id == RunAttempt.run_id)
        .where(or_(Run.id.in_(ids), Run.parent_id.in_(ids)), RunAttempt.device.is_not(None))
    )
    devices = {run_id: str(device) for run_id, device in session.execute(rows)}
    by_run = {}
    spent = ledgers(session, runs)
    for run in runs:
        ledger = spent[run.id]
        growing = sum(cost.device_seconds for cost in ledger.phases if cost.phase in _GROWS)
        # Without recorded phases, all of a run's time may grow.
        share = growing / ledger.device_seconds if growing else 1.0
        by_run[run.id] = Timing(run.device_seconds, share * run.device_seconds, devices.get(run.id))
    return by_run


def kinds_of_living_workers(session: Session) -> set[str | None]:
    return {device_kind(devices) for devices in _devices_of_living_workers(session)}


def number_of_living_workers(session: Session) -> int:
    return len(_devices_of_living_workers(session))


def _devices_of_living_workers(session: Session) -> Sequence[Any]:
    fresh = func.clock_timestamp() - func.make_interval(0, 0, 0, 0, 0, 0, _ALIVE_SECONDS)
    rows = select(WorkerRow.devices).where(WorkerRow.heartbeat_at > fresh, WorkerRow.pool != INTERACTIVE)
    return session.scalars(rows).all()


def _characters(data: Dataset) -> float:
    """The mean number of characters of a row; 0 where it was not measured."""
    figures = data.origin.get("figures") or {}
    spreads = (figures.get("prompt_characters"), figures.get("response_characters"))
    return sum(float(spread["mean"]) for spread in spreads if spread)


def _tokens(summary: Mapping[str, Any]) -> float | None:
    tokens, rows = _number(summary, "tokens"), _number(summary, "rows")
    return tokens / rows if tokens and rows else None


def _number(summary: Mapping[str, Any], name: str) -> float:
    """0 for anything else, which other kinds of runs may have by this name."""
    value = summary.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _mean(known: list[float]) -> float | None:
    return statistics.fmean(known) if known and all(known) else None
