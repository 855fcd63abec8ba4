"""A run equal to a finished one takes over its outputs instead of doing the work again."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.runs import hooks
from steerboard.runs.errors import UnusableInput
from steerboard.runs.reuse.cache_key import cache_key
from steerboard.runs.state.transitions import move
from steerboard.runs.tables import Run, RunOutput

# The number of equal runs that are searched for answers that still exist.
_LOOKED_AT = 20


def take_over(session: Session, run: Run) -> bool:
    """Let `run`, locked and with all its inputs there, succeed with the outputs of an equal finished run.

    Returns False, having set `cache_key` and nothing else, when there is none, reuse was declined, or an input cannot
    be used (which the worker that claims the run will report).
    """
    try:
        run.cache_key = cache_key(session, run)
    except UnusableInput:
        return False
    if run.cache_key is None or not run.reuse:
        return False
    sources = session.scalars(
        select(Run)
        .where(
            Run.project_id == run.project_id,
            Run.cache_key == run.cache_key,
            Run.state == "succeeded",
            Run.reused_from_id.is_(None),
            Run.id != run.id,
        )
        .order_by(Run.id)
        .limit(_LOOKED_AT if run.kind in ("answer", "evaluate") else 1)
    ).all()
    # Their evaluations may have been deleted since, and with them what they had made.
    if run.kind == "answer":
        source = next((source for source in sources if hooks.copy_responses(session, source, run)), None)
    elif run.kind == "evaluate":
        source = next((source for source in sources if hooks.evaluation_is_there(session, source)), None)
    else:
        source = next(iter(sources), None)
    if source is None:
        return False
    for output in session.scalars(select(RunOutput).where(RunOutput.run_id == source.id)):
        session.add(
            RunOutput(
                run_id=run.id,
                name=output.name,
                type=output.type,
                dataset_id=output.dataset_id,
                model_id=output.model_id,
                artifact_hash=output.artifact_hash,
                document=output.document,
            )
        )
    run.reused_from_id = source.id
    run.summary = {**(source.summary or {}), "reused_device_seconds": source.device_seconds}
    run.warnings = source.warnings
    run.progress = source.progress
    move(session, run, "succeeded", f"reused the outputs of the equal run {source.name} ({source.id})", "reused")
    return True
