"""What a run would cost: the device-seconds of earlier runs of its kind and method, scaled by the work.

Only runs that did all of their work in one attempt count: one that was resumed, or reused, shows less than it cost.
How large the model is and how long its texts are is not weighed; the spread of the earlier runs shows it.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.tables import Dataset
from steerboard.insights import memory, previews
from steerboard.insights.schemas import EarlierRun, RunEstimate
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.tables import Model
from steerboard.runs.inputs import resolve_all
from steerboard.runs.schemas.requests import RunWork
from steerboard.runs.standalone import checked
from steerboard.runs.tables import Run
from steerboard_contracts.configs.academic import AcademicConfig
from steerboard_contracts.configs.benchmark import BenchmarkConfig
from steerboard_contracts.configs.combine import CombineConfig
from steerboard_contracts.configs.evaluate import EvaluateConfig
from steerboard_contracts.configs.generate import GenerateConfig
from steerboard_contracts.configs.score import ScoreConfig
from steerboard_contracts.configs.select import SelectConfig
from steerboard_contracts.methods import method_of
from steerboard_contracts.run_config import RunConfig, stored_config
from steerboard_contracts.run_kinds import trains
from steerboard_contracts.training import TrainingConfig

_RUNS = 20


def estimate(session: Session, store: ArtifactStore, project: Project, asked: RunWork) -> RunEstimate:
    """Median, least and most of what the newest earlier runs would have cost with this work, and its memory.

    Raises `InvalidRun` for what `single.start_run` would refuse.
    """
    config, refs = checked(session, project, asked, store=store)
    things: dict[str, Dataset | Model] = {}
    for name, ref in refs.items():
        things[name] = session.get_one(Dataset, ref.dataset) if ref.dataset else session.get_one(Model, ref.model)
    work = _work(config, things, _kept(session, config, things))
    earlier: list[tuple[Run, float]] = []
    runs = _earlier(session, project, config)
    inputs = resolve_all(session, runs)
    for run in runs:
        done = _done(run, inputs.get(run.id))
        if done:
            earlier.append((run, run.device_seconds * work / done))
    bytes_of = memory.needed(session, store, config, things)
    if not earlier or not work:
        return RunEstimate(
            device_seconds_low=None, device_seconds=None, device_seconds_high=None, based_on=[], memory=bytes_of
        )
    scaled = [seconds for _, seconds in earlier]
    return RunEstimate(
        device_seconds_low=min(scaled),
        device_seconds=statistics.median(scaled),
        device_seconds_high=max(scaled),
        based_on=[EarlierRun(id=run.id, name=run.name, device_seconds=run.device_seconds) for run, _ in earlier],
        memory=bytes_of,
    )


def _earlier(session: Session, project: Project, config: RunConfig) -> list[Run]:
    method = getattr(config, "method", None)
    return list(
        session.scalars(
            select(Run)
            .where(
                Run.project_id == project.id,
                Run.kind == config.run,
                Run.method == method if method else Run.method.is_(None),
                Run.state == "succeeded",
                Run.reused_from_id.is_(None),
                Run.parent_id.is_(None),
                Run.failed_device_seconds == 0,
                Run.device_seconds > 0,
            )
            .order_by(Run.id.desc())
            .limit(_RUNS)
        )
    )


def _done(run: Run, things: Mapping[str, Dataset | Model] | None) -> float:
    """The work of a finished run with its inputs; 0 where it is no longer known."""
    if things is None:
        return 0.0
    learned = (run.summary or {}).get("rows") if trains(run.kind) else None
    return _work(stored_config(run.config), things, learned if isinstance(learned, int) else None)


def _kept(session: Session, config: RunConfig, things: Mapping[str, Dataset | Model]) -> int | None:
    """Training rows that a selection leaves, where the config has one that can be counted."""
    data = things.get("data")
    method = method_of(getattr(config, "method", None))
    if method is None or method.preview is None or method.preview.kind != "selection":
        return None
    if not isinstance(data, Dataset) or not data.normaliser:
        return None
    return previews.kept_rows(session, data, getattr(config, method.preview.fields["threshold"]))


def _work(config: RunConfig, things: Mapping[str, Dataset | Model], learned: int | None) -> float:
    """In a unit of the kind's own: samples learned, answers written, rows or sides scored; 1 where there is none, 0
    where that is not known.

    `learned`: how many rows of the train split are left to learn from, where that is known.
    """
    data = things.get("data")
    rows = data.rows if isinstance(data, Dataset) else 0
    held_out = data.held_out_rows if isinstance(data, Dataset) else 0
    if isinstance(config, TrainingConfig):
        train = float(rows - held_out)
        if learned is not None:
            train = learned
        elif getattr(config, "half", None) is not None:
            train /= 2
        samples = train * config.epochs
        return min(samples, config.max_steps * config.batch) if config.max_steps else samples
    if isinstance(config, GenerateConfig):
        if config.prompts:
            prompts = len(config.prompts) * max(1, len(config.scores))
        else:
            prompts = {"train": rows - held_out, "held_out": held_out, "all": rows}[config.split]
            if config.portion:
                prompts = round(prompts / config.portion.of)
            prompts = min(prompts, config.limit or prompts)
        return float(prompts * config.decoding.n)
    if isinstance(config, ScoreConfig):
        return float(rows)
    if isinstance(config, SelectConfig | CombineConfig):
        first = things.get("data.0")
        return float(first.rows) if isinstance(first, Dataset) else 0.0
    if isinstance(config, BenchmarkConfig):
        pairs = things.get("pairs")
        return 2.0 * pairs.rows if isinstance(pairs, Dataset) else 0.0
    if isinstance(config, EvaluateConfig):
        answers = sum(max(1, len(entrant.scores)) for entrant in config.entrants)
        return float(min(config.prompts, held_out) * answers)
    if isinstance(config, AcademicConfig):
        return 0.0  # how many items its tasks have is known where the harness is
    return 1.0
