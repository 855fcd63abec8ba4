"""What a run would cost: the device-seconds of earlier runs of its kind and method, scaled to its work.

Only runs that did all of their work in one attempt count: one that was resumed, or reused, shows less than it cost.
Those of other kinds of devices do not count either. No figure is better than one that may be wrong by a factor of ten.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.tables import Dataset
from steerboard.insights import memory, previews
from steerboard.insights.likeness import Traits, kinds_of_living_workers, reads_texts, scaled, timings
from steerboard.insights.schemas import EarlierRun, RunEstimate
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.tables import Model
from steerboard.runs.inputs import resolve_all
from steerboard.runs.schemas.requests import RunWork
from steerboard.runs.standalone.checks import checked
from steerboard.runs.standalone.foreseen import foreseen_warnings
from steerboard.runs.standalone.row_checks import refuse_failing
from steerboard.runs.tables import Run
from steerboard_contracts.methods import method_of
from steerboard_contracts.run_config import RunConfig, stored_config
from steerboard_contracts.run_kinds import described
from steerboard_contracts.specs.work import RowCounts
from steerboard_statistics.prediction import ScaledRun, predicted

_RUNS = 20


def estimate(session: Session, store: ArtifactStore, project: Project, request: RunWork) -> RunEstimate:
    """What the newest earlier runs that are most like it would have cost with its work, and its memory.

    Raises `InvalidRun` for what `start_run` would refuse.
    """
    config, refs = checked(session, project, request, store=store)
    check = refuse_failing(session, config, refs)
    things: dict[str, Dataset | Model] = {}
    for name, ref in refs.items():
        things[name] = session.get_one(Dataset, ref.dataset) if ref.dataset else session.get_one(Model, ref.model)
    work = _work(config, things, _kept(session, config, things))
    finished = _earlier(session, project, config)
    earlier = _scaled(session, finished, config, Traits.of(work, things, config)) if work else []
    prediction = predicted([scaled for _, scaled in earlier])
    bytes_of = memory.needed(session, store, config, things)
    warnings = foreseen_warnings(session, store, config, refs, check)
    based_on = [earlier[place][0] for place in prediction.places] if prediction else []
    return RunEstimate(
        device_seconds_low=prediction.low if prediction else None,
        device_seconds=prediction.middle if prediction else None,
        device_seconds_high=prediction.high if prediction else None,
        based_on=[EarlierRun(id=run.id, name=run.name, device_seconds=run.device_seconds) for run in based_on],
        finished=len(finished),
        memory=bytes_of,
        warnings=warnings,
    )


def _scaled(session: Session, runs: list[Run], config: RunConfig, new: Traits) -> list[tuple[Run, ScaledRun]]:
    """The runs without those that ran on another kind of device than the new one may get."""
    inputs = resolve_all(session, runs)
    times = timings(session, runs)
    devices = kinds_of_living_workers(session)
    reads = reads_texts(config)
    scaled_runs = []
    for run in runs:
        things, timing = inputs.get(run.id), times[run.id]
        done = _done(run, things)
        elsewhere = devices and None not in devices and timing.device is not None and timing.device not in devices
        if things is not None and done and not elsewhere:
            traits = Traits.of(done, things, stored_config(run.config), run.summary)
            scaled_runs.append((run, scaled(traits, timing, new, reads_texts=reads, devices=devices)))
    return scaled_runs


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
    learned = (run.summary or {}).get("rows") if run.kind == "train" else None
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
