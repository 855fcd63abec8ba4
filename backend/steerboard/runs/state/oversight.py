"""What people do to a run while it trains, and what is found about it: a pause, settings that change, health rules.

The worker that holds the run brings `control_of` to its stage; what the stage did comes back through `changed` and
`note_finding`, behind the fence. Callers commit.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from pydantic import ValidationError
from sqlalchemy import func
from sqlalchemy.orm import Session

from steerboard.runs.errors import RunNotActive, RunNotPausable, SettingNotChangeable
from steerboard.runs.hooks import News
from steerboard.runs.state.announcements import announce, note_news
from steerboard.runs.state.transitions import ENDED, lock, move
from steerboard.runs.tables import Run
from steerboard_contracts.complaints import locations
from steerboard_contracts.errors import ErrorLocation
from steerboard_contracts.methods import method_of
from steerboard_contracts.run_config import stored_config
from steerboard_contracts.stage.events import Changed, HealthFound, Prepared
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.watching.control import Change, Control
from steerboard_files.texts import storable

MOST_CHANGES = 100
MOST_FINDINGS = 500


def pause(session: Session, run: Run, actor: str) -> None:
    """A queued run immediately; a running one keeps a checkpoint after its step and frees its device. Asking twice is
    asking once. Raises `RunNotPausable`."""
    run = lock(session, run)
    if run.state == "paused" or run.pause_requested_at is not None:
        return
    if not pausable(run):
        what = f"it is {run.state}" if run.kind == "train" else f"it is of the kind {run.kind}"
        raise RunNotPausable(
            f"run {run.name} cannot be paused: {what}",
            hint="Only training runs that are queued or running can be paused.",
        )
    if run.state == "queued":
        move(session, run, "paused", f"paused by {actor} before it ran", "paused")
        note_news(session, News(run.project_id, "run.paused", {}, run))
        return
    run.pause_requested_at, run.pause_requested_by = func.clock_timestamp(), actor
    run.reason = f"being paused by {actor}"
    _announce(session, run)


def pausable(run: Run) -> bool:
    """Whether `pause` would have an effect, or already has."""
    return run.kind == "train" and run.state in ("queued", "running") and run.cancel_requested_at is None


def changeable(run: Run) -> dict[str, float]:
    """The settings that can change, with the values in force or asked for last; none once the run has ended."""
    spec = method_of(run.method)
    if spec is None or run.kind != "train" or run.state in ENDED:
        return {}
    values = {**run.config, **_changed_values(run)}
    return {name: values[name] for name in spec.changeable if values.get(name) is not None}


def change(session: Session, run: Run, values: Mapping[str, float], actor: str) -> None:
    """Have `values` of the config in force from the next optimiser step on. Raises `RunNotActive`,
    `SettingNotChangeable`."""
    run = lock(session, run)
    if run.state in ENDED:
        raise RunNotActive(f"run {run.name} has already {run.state}")
    now = changeable(run)
    known = ", ".join(now) or "none"
    faults = [ErrorLocation(location=f"config.{name}", message="cannot change") for name in values if name not in now]
    if faults or not values:
        raise SettingNotChangeable(
            f"{', '.join(sorted(values.keys() - now.keys())) or 'nothing'} cannot change while run {run.name} trains",
            hint=f"Settings that can change: {known}. For anything else, clone the run with changes.",
            errors=faults,
        )
    _check_values(run, values, now)
    if len(run.changes) >= MOST_CHANGES:
        raise SettingNotChangeable(f"run {run.name} has changed {MOST_CHANGES} times", hint="Clone it instead.")
    change_ = Change(number=len(run.changes) + 1, values=dict(values)).model_dump(mode="json")
    run.changes = [*run.changes, {**change_, "by": actor, "at": _now()}]
    _announce(session, run)


def _check_values(run: Run, values: Mapping[str, float], now: Mapping[str, float]) -> None:
    config = stored_config(run.config)
    assert isinstance(config, TrainingConfig)
    try:
        type(config).model_validate({**run.config, **_changed_values(run), **values})
    except ValidationError as error:
        raise SettingNotChangeable(
            "the values do not fit the run", errors=locations(error.errors(), "config")
        ) from error
    spec = method_of(run.method)
    for frozen in spec.frozen if spec else ():
        if frozen.when is not None and frozen.when in values and bool(values[frozen.when]) != bool(now[frozen.when]):
            raise SettingNotChangeable(
                f"{frozen.when} cannot change to or from 0: with 0 the run has no {frozen.name}",
                hint="Give another value, or clone the run with changes.",
                errors=[ErrorLocation(location=f"config.{frozen.when}", message="cannot change to or from 0")],
            )


def control_of(run: Run) -> Control:
    """What the run's stage should know."""
    changes = [Change.model_validate(applied) for applied in run.changes]
    return Control(changes=changes, pause=run.pause_requested_at is not None)


def prepared(session: Session, run: Run, event: Prepared) -> None:
    """What is known before the work begins. The run is locked behind the fence."""
    run.summary = storable(event.summary)
    run.warnings = storable([warning.model_dump(mode="json") for warning in event.warnings])
    _announce(session, run)


def changed(session: Session, run: Run, event: Changed) -> None:
    """A change came into force. The run is locked behind the fence."""
    run.changes = [
        {**applied, "step": event.step} if applied["number"] == event.number else applied for applied in run.changes
    ]
    _announce(session, run)


def note_finding(session: Session, run: Run, event: HealthFound) -> None:
    """A health rule holds: on the run's page, and announced once. The run is locked behind the fence."""
    known = any((finding["step"], finding["rule"]) == (event.step, event.rule) for finding in run.findings)
    if known or len(run.findings) >= MOST_FINDINGS:
        return
    finding = event.model_dump(mode="json", exclude={"type"})
    run.findings = [*run.findings, {**finding, "at": _now()}]
    _announce(session, run)
    note_news(session, News(run.project_id, "run.health", {"finding": finding}, run))


def _changed_values(run: Run) -> dict[str, float]:
    return {name: value for applied in run.changes for name, value in applied["values"].items()}


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat()


def _announce(session: Session, run: Run) -> None:
    session.flush()
    announce(session, run.project_id, "run.watched", {"run_id": str(run.id), "name": run.name})
