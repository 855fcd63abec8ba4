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
from steerboard.runs.standalone.checks import checked
from steerboard.runs.standalone.foreseen import foreseen_warnings
from steerboard.runs.tables import Run
from steerboard_contracts.methods import method_of
from steerboard_contracts.run_config import RunConfig, stored_config
from steerboard_contracts.run_kinds import described, trains
from steerboard_contracts.specs.work import RowCounts

_RUNS = 20


def estimate(session: Session, store: ArtifactStore, project: Project, asked: RunWork) -> RunEstimate:
    """Median, least and most of what the newest earlier runs would have cost with this work, and its memory.

    Raises `InvalidRun` for what `start_run` would refuse.
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
    model = things.get("model")
    warnings = foreseen_warnings(session, store, config, model if isinstance(model, Model) else None)
    if not earlier or not work:
        return RunEstimate(
            device_seconds_low=None,
            device_seconds=None,
            device_seconds_high=None,
            based_on=[],
            memory=bytes_of,
            warnings=warnings,
        )
    scaled = [seconds for _, seconds in earlier]
    return RunEstimate(
        device_seconds_low=min(scaled),
        device_seconds=statistics.median(scaled),
        device_seconds_high=max(scaled),
        based_on=[EarlierRun(id=run.id, name=run.name, device_seconds=run.device_seconds) for run, _ in earlier],
        memory=bytes_of,
        warnings=warnings,
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
    """`learned`: how many rows of the train split are left to learn from, where that is known."""
    counts = {
        name: RowCounts(thing.rows, thing.held_out_rows, learned if name == "data" else None)
        for name, thing in things.items()
        if isinstance(thing, Dataset)
    }
    return described(config).work(config, counts)
