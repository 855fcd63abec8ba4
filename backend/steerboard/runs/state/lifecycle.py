"""What people and recipes do to runs: create, cancel, resume. Callers commit."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.tables import Dataset
from steerboard.platform.http.errors import NotFound
from steerboard.platform.settings import get_settings
from steerboard.registry.endpoints.pins import with_pin
from steerboard.registry.tables import Model
from steerboard.runs.errors import RunNotActive, RunNotResumable, UnusableInput
from steerboard.runs.facts.recording import note_settings
from steerboard.runs.launch.judges import with_judges
from steerboard.runs.quota import refuse_beyond_quota
from steerboard.runs.state.dependencies import settle, shards_of, stop, upstream_of
from steerboard.runs.state.transitions import ENDED, lock, lock_order, move
from steerboard.runs.tables import Run, RunInput
from steerboard_contracts.complaints import locations
from steerboard_contracts.errors import BadInput
from steerboard_contracts.fields import EXECUTION_FIELDS
from steerboard_contracts.run_config import RunConfig, stored_config


@dataclass(frozen=True)
class InputRef:
    """The source of an input: exactly one of an upstream run's output, a dataset, a model (their ids).

    `output` names a further output of the run, such as its critic."""

    run: uuid.UUID | None = None
    dataset: uuid.UUID | None = None
    model: uuid.UUID | None = None
    output: str | None = None

    def __post_init__(self) -> None:
        if sum(value is not None for value in (self.run, self.dataset, self.model)) != 1:
            raise UnusableInput("an input needs exactly one of a run, a dataset and a model")


def create_run(
    session: Session,
    project: Project,
    *,
    name: str,
    config: RunConfig,
    inputs: dict[str, InputRef],
    pipeline_id: uuid.UUID | None = None,
    parent: Run | None = None,
    pool: str = "default",
    priority: int = 0,
    reuse: bool = True,
    created_by: str,
    max_attempts: int | None = None,
) -> Run:
    """A new run, `pending` while upstream runs are under way, `queued` when its inputs are there.

    It is `succeeded` immediately when `reuse` finds an equal finished run. With a `parent` it is one of those that the
    parent waits for, and ends with it. Raises `NotFound` for an input, or the endpoint that it asks, that is not in the
    project; `BadInput` for a judge whose word may not be a reward; `QuotaReached`.
    """
    config = with_judges(session, project, with_pin(session, project, config))
    for input_name, ref in inputs.items():
        _check_input(session, project, input_name, ref)
    upstream = [ref.run for ref in inputs.values() if ref.run is not None]
    names = session.scalars(select(Run.name).where(Run.id.in_(upstream)).order_by(Run.id)).all() if upstream else []
    run = Run(
        project_id=project.id,
        pipeline_id=parent.pipeline_id if parent is not None else pipeline_id,
        parent_id=parent.id if parent is not None else None,
        name=name,
        kind=config.run,
        method=getattr(config, "method", None),
        config=config.model_dump(mode="json"),
        pool=pool,
        priority=priority,
        attempt=0,
        failed_attempts=0,
        max_attempts=max_attempts or get_settings().max_attempts,
        interruptions=0,
        max_interruptions=get_settings().max_interruptions,
        reuse=reuse,
        device_seconds=0.0,
        failed_device_seconds=0.0,
        created_by=created_by,
    )
    session.add(run)
    move(session, run, "pending", f"waiting for {', '.join(names)}" if names else "being set up")
    for input_name, ref in inputs.items():
        session.add(
            RunInput(
                run_id=run.id,
                name=input_name,
                upstream_run_id=ref.run,
                upstream_output=ref.output,
                dataset_id=ref.dataset,
                model_id=ref.model,
            )
        )
    session.flush()
    settle(session, run)
    if parent is None and run.state != "succeeded":
        refuse_beyond_quota(session, project)
    return run


def _check_input(session: Session, project: Project, name: str, ref: InputRef) -> None:
    thing: Run | Dataset | Model | None
    if ref.run is not None:
        thing = session.get(Run, ref.run)
    elif ref.dataset is not None:
        thing = session.get(Dataset, ref.dataset)
    else:
        thing = session.get(Model, ref.model)
    if thing is None or thing.project_id != project.id:
        raise NotFound(f"input {name} names a run, dataset or model that is not in project {project.name}")


def request_cancel(session: Session, run: Run, actor: str) -> None:
    """End a run: pending and queued immediately, running at its worker's next heartbeat; its shards with it.

    Asking twice is asking once. Raises `RunNotActive` when the run has ended in another way.
    """
    lock_order(session, run)
    run = lock(session, run)
    if run.state == "cancelled":
        return
    if run.state in ENDED:
        raise RunNotActive(f"run {run.name} has already {run.state}")
    stop(session, run, actor)
    for shard in shards_of(session, run):
        stop(session, lock(session, shard), actor)


def resume(session: Session, run: Run, actor: str, changes: Mapping[str, Any] | None = None) -> None:
    """Give a failed, cancelled or paused run new attempts; they start from its newest checkpoint.

    Runs downstream that ended only because this one did wait for it again, and so do its broken shards. `changes` of
    the config are of `EXECUTION_FIELDS` only. Raises `RunNotResumable` when the run is in another state or one of its
    upstream runs has to be resumed first, `BadInput` (`bad_config`) for other changes, `QuotaReached`,
    `StorageQuotaReached`.
    """
    lock_order(session, run)
    run = lock(session, run)
    refusal = why_not_resumable(session, run)
    if refusal is not None:
        raise refusal
    refuse_beyond_quota(session, session.get_one(Project, run.project_id))
    shards = shards_of(session, run)
    if changes:
        config = _changed(run, changes)
        for each in (run, *shards):
            each.config = config
        session.flush()
        note_settings(session, run)
    _revive(session, run, f"resumed by {actor}" + _in_words(changes))
    for shard in shards:
        if lock(session, shard).state in ("failed", "cancelled"):
            _revive(session, shard, f"resumed by {actor}")
            settle(session, shard)
    _revive_downstream(session, run, actor)
    settle(session, run)


def _changed(run: Run, changes: Mapping[str, Any]) -> dict[str, Any]:
    kind = type(stored_config(run.config))
    others = sorted(changes.keys() - (EXECUTION_FIELDS & kind.model_fields.keys()))
    if others:
        raise BadInput(
            f"{', '.join(others)} cannot be changed when a run is resumed",
            code="bad_config",
            hint="Only settings of how the work is split can change; for others, clone the run with changes.",
        )
    try:
        return kind.model_validate({**run.config, **changes}).model_dump(mode="json")
    except ValidationError as error:
        raise BadInput(
            "the changes do not fit the run", code="bad_config", errors=locations(error.errors(), "config")
        ) from error


def _in_words(changes: Mapping[str, Any] | None) -> str:
    return f" with {', '.join(f'{name} {value}' for name, value in changes.items())}" if changes else ""


def why_not_resumable(session: Session, run: Run) -> RunNotResumable | None:
    """What `resume` would raise for the run as it is now."""
    if run.state not in ("failed", "cancelled", "paused"):
        return RunNotResumable(
            f"run {run.name} is {run.state}", hint="Only failed, cancelled and paused runs are resumed."
        )
    broken = next((up for up in upstream_of(session, run) if up.state in ("failed", "cancelled")), None)
    if broken is None:
        return None
    return RunNotResumable(
        f"run {run.name} needs the output of run {broken.name}, which {broken.reason_code or broken.state}",
        hint=f"Resume run {broken.name} first.",
    )


def _revive(session: Session, run: Run, reason: str) -> None:
    run.error = run.not_before = run.cancel_requested_at = run.cancel_requested_by = None
    run.pause_requested_at = run.pause_requested_by = None
    settings = get_settings()
    run.failed_attempts, run.max_attempts = 0, settings.max_attempts
    run.interruptions, run.max_interruptions = 0, settings.max_interruptions
    move(session, run, "pending", reason)


def _revive_downstream(session: Session, run: Run, actor: str) -> None:
    downstream = session.scalars(
        select(Run)
        .where(
            Run.id.in_(select(RunInput.run_id).where(RunInput.upstream_run_id == run.id)),
            Run.reason_code.in_(("upstream_failed", "upstream_cancelled")),
        )
        .order_by(Run.id)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    ).all()
    for waiting in downstream:
        if waiting.state in ("failed", "cancelled"):
            _revive(session, waiting, f"waiting for {run.name}, resumed by {actor}")
            _revive_downstream(session, waiting, actor)
