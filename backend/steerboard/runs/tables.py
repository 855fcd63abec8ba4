"""Pipelines, runs and everything a run leaves behind. Postgres is the only truth about their state."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import BigInteger, Boolean, CheckConstraint, ForeignKey, Identity, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, BigInt, CreatedAt, Id, Json, Timestamp
from steerboard.platform.searched_names import name_lower, search_index

RUN_STATES = ("pending", "queued", "running", "succeeded", "failed", "cancelled", "skipped", "paused")
_STATES_SQL = ", ".join(f"'{state}'" for state in RUN_STATES)
_FAILED = text("state = 'failed' AND parent_id IS NULL")
_LISTED = text("parent_id IS NULL")
_SORTED = ("name", "state", "kind")


class Pipeline(Base):
    """One execution of a recipe. Its state follows from its runs."""

    __tablename__ = "pipelines"
    __table_args__ = (UniqueConstraint("project_id", "name"), search_index("pipelines"))

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    recipe: Mapped[Json]
    recipe_text: Mapped[str]
    settings: Mapped[Json]
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]
    name_lower: Mapped[str] = name_lower()


class Run(Base):
    """One stage of work, or one shard of it (`parent_id`, `shard`).

    Fencing: a write on behalf of a run names `attempt` and changes nothing when the row has moved on.
    `attempt` numbers its claims. Those that failed count against `max_attempts`, those that the machine or the
    platform ended against `max_interruptions`; resuming it counts both from 0.
    `position` orders runs of one priority, by age unless someone moved one; a higher `priority` goes first.
    """

    __tablename__ = "runs"
    __table_args__ = (
        CheckConstraint(f"state IN ({_STATES_SQL})", name="state"),
        Index("ix_runs_claim", "pool", text("priority DESC"), "position", postgresql_where=text("state = 'queued'")),
        Index("ix_runs_lease", "lease_expires_at", postgresql_where=text("state = 'running'")),
        Index("ix_runs_pending", "position", postgresql_where=text("state = 'pending'")),
        Index("ix_runs_project_id_id", "project_id", "id"),
        # Lists that are filtered and sorted by these; shards are in none.
        *(Index(f"ix_runs_{column}", "project_id", column, "id", postgresql_where=_LISTED) for column in _SORTED),
        Index("ix_runs_reused_from_id", "reused_from_id", postgresql_where=text("reused_from_id IS NOT NULL")),
        Index(
            "ix_runs_failed", "project_id", "ended_at", postgresql_where=text("state = 'failed' AND parent_id IS NULL")
        ),
        Index("ix_runs_duration", "project_id", text("(ended_at - started_at)"), "id", postgresql_where=_LISTED),
        Index(
            "ix_runs_device_time",
            "project_id",
            text("(device_seconds + failed_device_seconds)"),
            "id",
            postgresql_where=_LISTED,
        ),
    )

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    pipeline_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("pipelines.id"), index=True)
    parent_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("runs.id"), index=True)
    shard: Mapped[int | None]
    name: Mapped[str]
    kind: Mapped[str]
    method: Mapped[str | None]
    config: Mapped[Json]
    state: Mapped[str]
    reason: Mapped[str]
    reason_code: Mapped[str | None]
    error: Mapped[Json | None]
    pool: Mapped[str]
    priority: Mapped[int]
    position: Mapped[int] = mapped_column(BigInteger, Identity())
    attempt: Mapped[int]
    failed_attempts: Mapped[int] = mapped_column(server_default=text("0"))
    max_attempts: Mapped[int]
    interruptions: Mapped[int] = mapped_column(server_default=text("0"))
    max_interruptions: Mapped[int] = mapped_column(server_default=text("10"))
    lease_owner: Mapped[str | None]
    lease_expires_at: Mapped[Timestamp | None]
    not_before: Mapped[Timestamp | None]
    cancel_requested_at: Mapped[Timestamp | None]
    cancel_requested_by: Mapped[str | None]
    pause_requested_at: Mapped[Timestamp | None]
    pause_requested_by: Mapped[str | None]
    # [{number, values, step, by, at}] and [{step, rule, kind, action, reason, at}], see `state.oversight`.
    changes: Mapped[list[dict[str, Any]]] = mapped_column(JSONB, server_default=text("'[]'"))
    findings: Mapped[list[dict[str, Any]]] = mapped_column(JSONB, server_default=text("'[]'"))
    # [{code, level, message}], see `steerboard_contracts.watching.warnings`.
    warnings: Mapped[list[dict[str, Any]]] = mapped_column(JSONB, server_default=text("'[]'"))
    reuse: Mapped[bool] = mapped_column(Boolean)
    cache_key: Mapped[str | None] = mapped_column(index=True)
    reused_from_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("runs.id"))
    progress: Mapped[Json | None]
    summary: Mapped[Json | None]
    device_seconds: Mapped[float]
    failed_device_seconds: Mapped[float]
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]
    queued_at: Mapped[Timestamp | None]
    started_at: Mapped[Timestamp | None]
    ended_at: Mapped[Timestamp | None]


class RunInput(Base):
    """One named input: exactly one of an upstream run's output, a dataset or a model.

    `upstream_output` names which output of the upstream run; null: the one that it is run for."""

    __tablename__ = "run_inputs"
    __table_args__ = (CheckConstraint("num_nonnulls(upstream_run_id, dataset_id, model_id) = 1", name="one_source"),)

    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    upstream_run_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("runs.id"), index=True)
    upstream_output: Mapped[str | None]
    dataset_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("datasets.id"))
    model_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("models.id"))


class RunOutput(Base):
    """What a succeeded run made: a dataset, a model, or a report kept in the row itself."""

    __tablename__ = "run_outputs"

    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    type: Mapped[str]
    dataset_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("datasets.id"))
    model_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("models.id"))
    artifact_hash: Mapped[str | None] = mapped_column(ForeignKey("artifacts.hash"))
    document: Mapped[Json | None]


class RunTransition(Base):
    """The timeline of a run: every change of state with its reason."""

    __tablename__ = "run_transitions"

    id: Mapped[Id]
    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("runs.id"), index=True)
    attempt: Mapped[int]
    from_state: Mapped[str | None]
    to_state: Mapped[str]
    reason: Mapped[str]
    created_at: Mapped[CreatedAt]


class RunAttempt(Base):
    """One try at a run by one worker; failed ones keep their cost apart. `phases`: {name: {device_seconds, tokens}} of
    what its stage has measured so far; null of attempts of releases that measured none. `device`: what kind they were,
    where the worker could tell. `threads`: CPU threads of each of its processes; null until they are settled."""

    __tablename__ = "run_attempts"
    __table_args__ = (Index("ix_run_attempts_ended_at", "ended_at"),)

    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    worker: Mapped[str]
    devices: Mapped[int]
    device: Mapped[str | None]
    threads: Mapped[int | None]
    started_at: Mapped[CreatedAt]
    heartbeat_at: Mapped[CreatedAt]
    ended_at: Mapped[Timestamp | None]
    outcome: Mapped[str | None]
    reason: Mapped[str | None]
    device_seconds: Mapped[float]
    phases: Mapped[Json | None]


class Metric(Base):
    """A replayed step overwrites its values and never doubles them."""

    __tablename__ = "metrics"

    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    value: Mapped[float]
    attempt: Mapped[int]


class ProbeStep(Base):
    """Answers to a run's probe prompts after a step (`steerboard_contracts.stage.events.Probed`); a replayed step
    overwrites its own."""

    __tablename__ = "probe_steps"

    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    attempt: Mapped[int]
    document: Mapped[Json]


class SampledGroup(Base):
    """The answers to one prompt of a step that sampled (`steerboard_contracts.stage.events.Sampled`); a replayed step
    overwrites its own."""

    __tablename__ = "sampled_groups"

    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    place: Mapped[int] = mapped_column(primary_key=True)
    attempt: Mapped[int]
    document: Mapped[Json]


class LivePairRow(Base):
    """What an active run makes of one of its inspected pairs at the newest evaluated step
    (`steerboard_contracts.stage.events.Inspected`). When it succeeds, an output has all steps, and these rows go."""

    __tablename__ = "live_pairs"

    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    place: Mapped[int] = mapped_column(primary_key=True)
    step: Mapped[int]
    attempt: Mapped[int]
    document: Mapped[Json]


class RunLog(Base):
    """A line of a stage's log."""

    __tablename__ = "run_logs"

    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    id: Mapped[BigInt] = mapped_column(Identity(), primary_key=True)
    attempt: Mapped[int]
    level: Mapped[str]
    message: Mapped[str]
    created_at: Mapped[CreatedAt]


class RunCheckpoint(Base):
    """A checkpoint that is whole in the artifact store (`runs.checkpoints.stored`). `files`: [{path, sha256, size}]."""

    __tablename__ = "run_checkpoints"

    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    files: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    created_at: Mapped[CreatedAt]


class WorkerRow(Base):
    """A worker process, alive while its heartbeat is fresh. `holds`: the models that it keeps loaded, leaving out what
    battles of an arena load and unload, [{project_id, name}]."""

    __tablename__ = "workers"

    id: Mapped[Id]
    name: Mapped[str]
    pool: Mapped[str]
    host: Mapped[str]
    pid: Mapped[int]
    devices: Mapped[Json]
    run_id: Mapped[uuid.UUID | None]
    holds: Mapped[list[dict[str, str]]] = mapped_column(JSONB, server_default=text("'[]'"))
    started_at: Mapped[CreatedAt]
    heartbeat_at: Mapped[CreatedAt]
