"""Events of a running attempt: progress, metrics, answers, phases, logs. Written in batches, each behind the fence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import insert
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import Session

from steerboard.runs.facts.recording import note_metrics
from steerboard.runs.ledger import recorded
from steerboard.runs.state import oversight
from steerboard.runs.state.announcements import announce
from steerboard.runs.state.claims import Claim, fenced
from steerboard.runs.tables import LivePairRow, Metric, ProbeStep, RunAttempt, RunLog, SampledGroup
from steerboard_contracts.stage.events import Changed, HealthFound, Inspected, Prepared, Probed, Sampled
from steerboard_contracts.watching.ledger import Phase, PhaseTime
from steerboard_files.texts import storable

LINE_CHARACTERS = 4_000


@dataclass
class Batch:
    """`metrics` by (name, step): a later value replaces an earlier one. `probed`: by step; `sampled`: by (step,
    place); `inspected`: by place, of the newest step. `phases`: what they have taken since the attempt began. `logs`:
    (level, message)."""

    progress: dict[str, Any] | None = None
    metrics: dict[tuple[str, int], float] = field(default_factory=dict)
    probed: dict[int, Probed] = field(default_factory=dict)
    sampled: dict[tuple[int, int], Sampled] = field(default_factory=dict)
    inspected: dict[int, Inspected] = field(default_factory=dict)
    prepared: Prepared | None = None
    watched: list[Changed | HealthFound] = field(default_factory=list)
    phases: dict[Phase, PhaseTime] = field(default_factory=dict)
    logs: list[tuple[str, str]] = field(default_factory=list)

    def __bool__(self) -> bool:
        rows = (self.metrics, self.probed, self.sampled, self.inspected, self.watched, self.phases, self.logs)
        return self.progress is not None or self.prepared is not None or any(rows)


def write(session: Session, claim: Claim, batch: Batch) -> None:
    """Store a batch. Metrics and answers of a step that was stored before are overwritten. Raises `LeaseLost`."""
    run = fenced(session, claim)
    if batch.metrics:
        statement = postgresql.insert(Metric)
        session.execute(
            statement.on_conflict_do_update(
                index_elements=["run_id", "name", "step"],
                set_={"value": statement.excluded.value, "attempt": statement.excluded.attempt},
            ),
            [
                {"run_id": run.id, "name": name, "step": step, "value": value, "attempt": claim.attempt}
                for (name, step), value in batch.metrics.items()
            ],
        )
        note_metrics(session, run, batch.metrics)
    for step, probed in batch.probed.items():
        document = storable(probed.model_dump(mode="json", exclude={"type", "step"}))
        session.merge(ProbeStep(run_id=run.id, step=step, attempt=claim.attempt, document=document))
    for (step, place), sampled in batch.sampled.items():
        document = storable(sampled.group.model_dump(mode="json"))
        session.merge(SampledGroup(run_id=run.id, step=step, place=place, attempt=claim.attempt, document=document))
    if batch.inspected:
        replace = postgresql.insert(LivePairRow)
        session.execute(
            replace.on_conflict_do_update(
                index_elements=["run_id", "place"],
                set_={name: replace.excluded[name] for name in ("step", "attempt", "document")},
            ),
            [
                {
                    "run_id": run.id,
                    "place": place,
                    "step": inspected.step,
                    "attempt": claim.attempt,
                    "document": storable(inspected.found.model_dump(mode="json")),
                }
                for place, inspected in batch.inspected.items()
            ],
        )
    if batch.prepared is not None:
        oversight.prepared(session, run, batch.prepared)
    for event in batch.watched:
        if isinstance(event, Changed):
            oversight.changed(session, run, event)
        else:
            oversight.note_finding(session, run, event)
    if batch.phases:
        attempt = session.get_one(RunAttempt, (run.id, claim.attempt))
        attempt.phases = recorded(batch.phases, attempt.devices)
    if batch.logs:
        session.execute(
            insert(RunLog),
            [
                {"run_id": run.id, "attempt": claim.attempt, "level": level, "message": _line(message)}
                for level, message in batch.logs
            ],
        )
    if batch.progress is not None:
        run.progress = batch.progress
        session.flush()
        payload = {"run_id": str(run.id), "name": run.name, "progress": batch.progress}
        if run.pipeline_id is not None:
            payload["pipeline_id"] = str(run.pipeline_id)
        announce(session, run.project_id, "run.progress", payload)


def _line(line: str) -> str:
    """A log line, bounded."""
    clean = storable(line)
    return clean if len(clean) <= LINE_CHARACTERS else clean[: LINE_CHARACTERS - 1] + "\u2026"
