"""A history becomes a run that has succeeded."""

from __future__ import annotations

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.rows.row_writer import copy_in
from steerboard.platform.names import next_name_of_all
from steerboard.runs.state.transitions import move
from steerboard.runs.tables import Run
from steerboard.trackers.histories.reading import read_history
from steerboard_contracts.run_kinds.history import HistoryConfig
from steerboard_files.records import Source

_COPY = "COPY metrics (run_id, name, step, value, attempt) FROM STDIN"
_ATTEMPT = 1
_MOST_LABEL = 255


def import_history(session: Session, project: Project, source: Source, name: str | None, actor: str) -> tuple[Run, int]:
    """(the run, how many values were not finite and are left out). Raises what `read_history` raises."""
    history = read_history(source)
    file = "".join(character if character.isprintable() else "?" for character in source.label)[:_MOST_LABEL]
    config = HistoryConfig(format=history.format, file=file, settings=history.settings)
    alone = (Run.project_id == project.id, Run.pipeline_id.is_(None))
    run = Run(
        project_id=project.id,
        name=name or next_name_of_all(session, project.id, Run.name, config.run, *alone),
        kind=config.run,
        config=config.model_dump(mode="json"),
        pool="default",
        priority=0,
        attempt=_ATTEMPT,
        failed_attempts=0,
        max_attempts=1,
        interruptions=0,
        max_interruptions=0,
        reuse=False,
        device_seconds=0.0,
        failed_device_seconds=0.0,
        created_by=actor,
    )
    session.add(run)
    move(session, run, "pending", "being imported")
    with copy_in(session, _COPY) as copy:
        for metric, values in history.metrics.items():
            for step, value in sorted(values.items()):
                copy.write_row((run.id, metric, step, value, _ATTEMPT))
    run.summary = history.last
    move(session, run, "succeeded", f"imported from {file}")
    return run, history.not_finite
