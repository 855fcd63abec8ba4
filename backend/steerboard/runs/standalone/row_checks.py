"""Rows tokenised before a training run: what it would cut, leave out or refuse.

A check is a run that no list shows. Equal ones are made once, so its outcome is known whenever an equal run is asked
for: a launch is refused for what the check has shown to fail.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.tables import Dataset
from steerboard.platform.names import next_name_of_all
from steerboard.runs.schemas.requests import RunWork
from steerboard.runs.schemas.runs import RowCheck
from steerboard.runs.standalone.checks import InvalidRun, checked
from steerboard.runs.state.lifecycle import InputRef, create_run
from steerboard.runs.tables import Run, RunInput
from steerboard_contracts.errors import ErrorLocation
from steerboard_contracts.run_config import RunConfig
from steerboard_contracts.run_kinds.check_rows import row_check_of
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.watching.warnings import rows_would_be_too_long
from steerboard_contracts.wording import counted

# Someone waits for it.
_PRIORITY = 100
# After that long, a check that failed is made again.
_FAILED_FOR = dt.timedelta(minutes=1)


def row_check(session: Session, project: Project, work: RunWork, pool: str, actor: str) -> RowCheck | None:
    """`check_of` the run that is asked for. None for runs that train nothing, and for models that are imported from
    outside. Raises `InvalidRun`."""
    config, refs = checked(session, project, work)
    if not isinstance(config, TrainingConfig) or not {"model", "data"} <= refs.keys():
        return None
    return check_of(session, project, config, refs, pool, actor)


def check_of(
    session: Session, project: Project, config: TrainingConfig, refs: Mapping[str, InputRef], pool: str, actor: str
) -> RowCheck:
    """The newest check that is equal, or else a new one. `refs` have a model and data that exist."""
    run = _newest(session, config, refs)
    if run is None or _is_made_again(run):
        alone = (Run.project_id == project.id, Run.pipeline_id.is_(None))
        run = create_run(
            session,
            project,
            name=next_name_of_all(session, project.id, Run.name, "check_rows", *alone),
            config=row_check_of(config),
            inputs={name: refs[name] for name in ("model", "data")},
            pool=pool,
            priority=_PRIORITY,
            created_by=actor,
        )
    return _shown(session, run, refs["data"], config)


def refuse_failing(session: Session, config: RunConfig, refs: Mapping[str, InputRef]) -> RowCheck | None:
    """The finished check, if there is one. Raises `InvalidRun` where it has shown that the run will fail."""
    check = finished_check(session, config, refs)
    if check is not None and check.refusal is not None:
        fault = ErrorLocation(location="inputs.data", message=check.refusal)
        raise InvalidRun("the run cannot be started", errors=[fault], hint="Nothing was started.")
    return check


def finished_check(session: Session, config: RunConfig, refs: Mapping[str, InputRef]) -> RowCheck | None:
    """The newest of rows that such a run would learn; None where there is none."""
    data = refs.get("data")
    if not isinstance(config, TrainingConfig) or data is None or data.dataset is None or _of(refs, "model") is None:
        return None
    run = _newest(session, config, refs)
    return _shown(session, run, data, config) if run is not None and run.state == "succeeded" else None


def _of(refs: Mapping[str, InputRef], name: str) -> uuid.UUID | None:
    """The model or dataset of an input, where it exists already."""
    ref = refs.get(name)
    return (ref.model or ref.dataset) if ref is not None else None


def _is_made_again(run: Run) -> bool:
    """Who asks every second until a check has ended must see that it failed."""
    if run.state == "failed" and run.ended_at is not None:
        return dt.datetime.now(dt.UTC) - run.ended_at > _FAILED_FOR
    return run.state == "cancelled"


def _newest(session: Session, config: TrainingConfig, refs: Mapping[str, InputRef]) -> Run | None:
    wanted = [Run.kind == "check_rows"]
    wanted.append(Run.config == row_check_of(config).model_dump(mode="json"))
    for name in ("model", "data"):
        given = (RunInput.run_id == Run.id, RunInput.name == name)
        thing = func.coalesce(RunInput.model_id, RunInput.dataset_id) == _of(refs, name)
        wanted.append(select(RunInput.run_id).where(*given, thing).exists())
    return session.scalar(select(Run).where(*wanted).order_by(Run.id.desc()).limit(1))


def _shown(session: Session, run: Run, data: InputRef, config: TrainingConfig) -> RowCheck:
    summary = run.summary if run.state == "succeeded" and run.summary else {}
    rows, checked_rows = int(summary.get("rows", 0)), int(summary.get("checked", 0))
    too_long, refused = int(summary.get("too_long_rows", 0)), int(summary.get("refused_rows", 0))
    name = session.get_one(Dataset, data.dataset).name
    fate = "cut" if config.too_long == "truncate" else "left out"
    refusal = None
    if refused:
        first = "; ".join(f"row {refusal['row']}: {refusal['message']}" for refusal in summary["refused"])
        refusal = (
            f"the chat template refuses {refused:,} of {counted(checked_rows, 'row')} of `{name}` that were checked: "
            f"{first}. Correct or drop these rows, map their roles at import, or choose another template"
        )
    elif too_long and config.too_long == "refuse":
        refusal = (
            f"{too_long:,} of {counted(checked_rows, 'row')} of `{name}` that were checked are too long. Raise "
            "max_length, or set too_long to truncate or drop"
        )
    return RowCheck(
        run_id=run.id,
        state=run.state,
        reason=run.reason,
        rows=rows,
        checked=checked_rows,
        too_long=too_long,
        refused=refused,
        refusal=refusal,
        warning=rows_would_be_too_long(name, checked_rows, too_long, fate, int(summary.get("max_length", 0))),
    )
