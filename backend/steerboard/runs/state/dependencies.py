"""The fate of pending runs: queued once all their inputs exist, ended once one never will.

A run with `shards` greater than one gets one child run a shard when its inputs are there, waits for them, and is
then queued itself, to gather their outputs. An evaluate run gets the runs of an evaluation as its children, and has
succeeded with the last of them: no worker ever takes it.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from steerboard.runs.inputs import AFTER_ANY_END
from steerboard.runs.state import dropped_variants, evaluate, stopped_rounds
from steerboard.runs.state.reuse import take_over
from steerboard.runs.state.states import DONE
from steerboard.runs.state.transitions import ENDED, move
from steerboard.runs.tables import Run, RunInput

_BROKEN = ("failed", "cancelled")


def settle_pending(session: Session, limit: int = 100) -> int:
    """Settle up to `limit` pending runs that can move, and stop shards whose parent has ended.

    Rows that another process has in hand are left to it, so this never waits for one. Returns how many moved; call
    again until it is 0, since an ending may settle runs further down.
    """
    moved = sum(settle(session, run) for run in _take(session, Run.state == "pending", _can_move(), limit=limit))
    parent = aliased(Run)
    orphaned = exists().where(Run.parent_id == parent.id, parent.state.in_(ENDED))
    active = Run.state.in_(("pending", "queued", "running"))  # for each of these there is an index
    for shard in _take(session, active, Run.cancel_requested_at.is_(None), orphaned, limit=limit):
        stop(session, shard, f"the end of run {session.get_one(Run, shard.parent_id).name}")
        moved += 1
    return moved


def _take(session: Session, *which: ColumnElement[bool], limit: int) -> list[Run]:
    return list(
        session.scalars(
            select(Run)
            .where(*which)
            .order_by(Run.position)
            .limit(limit)
            .with_for_update(key_share=True, skip_locked=True)
            .execution_options(populate_existing=True)
        )
    )


def settle(session: Session, run: Run) -> bool:
    """Move one pending run, locked by the caller (or just made), if it can move. Returns whether it did."""
    shards = shards_of(session, run)
    blockers = shards or upstream_of(session, run)
    if not shards and (before := ends_before(session, run)):
        if any(earlier.state not in ENDED for earlier in before):
            return False
        # First of all: a variant that is dropped has not failed because something that it needs did.
        if dropped_variants.drop(session, run, blockers):
            return True
    broken = next((blocker for blocker in blockers if blocker.state in _BROKEN), None)
    if broken is not None:
        _end_because_of(session, run, broken, shards)
        return True
    if any(blocker.state not in DONE for blocker in blockers):
        return False
    if shards and run.kind == "evaluate":
        evaluate.finish(session, run, shards)
        return True
    if shards:
        begun = [shard.started_at for shard in shards if shard.started_at is not None]
        run.started_at = min(begun, default=run.started_at)
        move(session, run, "queued", f"all {len(shards)} shards are done; waiting for a worker to gather them")
        return True
    if stopped_rounds.leave_out(session, run, blockers) or dropped_variants.drop(session, run, blockers):
        return True
    if take_over(session, run):
        return True
    if run.kind == "evaluate":
        evaluate.begin(session, run)
        return True
    count = int(run.config.get("shards") or 1)
    if count > 1 and run.shard is None:
        for index in range(count):
            _make_shard(session, run, index, count)
        run.reason = f"waiting for its {count} shards"
        return True
    move(session, run, "queued", f"waiting for a worker of pool {run.pool}")
    return True


def shards_of(session: Session, run: Run) -> list[Run]:
    """The child runs of a run, in order: shards, or those of an evaluation."""
    return list(session.scalars(select(Run).where(Run.parent_id == run.id).order_by(Run.shard, Run.id)))


def upstream_of(session: Session, run: Run) -> list[Run]:
    """The runs whose outputs `run` needs, and those that it needs to have succeeded."""
    return _makers(session, run, ~RunInput.name.startswith(AFTER_ANY_END))


def ends_before(session: Session, run: Run) -> list[Run]:
    """The runs that have to end before `run`, one way or another."""
    return _makers(session, run, RunInput.name.startswith(AFTER_ANY_END))


def _makers(session: Session, run: Run, which: ColumnElement[bool]) -> list[Run]:
    inputs = select(RunInput.upstream_run_id).where(RunInput.run_id == run.id, which)
    return list(session.scalars(select(Run).where(Run.id.in_(inputs)).order_by(Run.id)))


def _can_move() -> ColumnElement[bool]:
    """Nothing this run waits for is still under way, or something of it has broken."""
    child, upstream = aliased(Run), aliased(Run)
    is_child = child.parent_id == Run.id
    has_upstream = and_(RunInput.run_id == Run.id, RunInput.upstream_run_id == upstream.id)
    any_end = RunInput.name.startswith(AFTER_ANY_END)
    is_upstream = and_(has_upstream, ~any_end)
    waits = exists().where(has_upstream, any_end, upstream.state.not_in(ENDED))
    has_shards = exists().where(is_child)
    return or_(
        exists().where(is_child, child.state.in_(_BROKEN)),
        and_(has_shards, ~exists().where(is_child, child.state != "succeeded")),
        and_(~waits, exists().where(is_upstream, upstream.state.in_(_BROKEN))),
        and_(~has_shards, ~waits, ~exists().where(is_upstream, upstream.state.not_in(DONE))),
    )


def _end_because_of(session: Session, run: Run, broken: Run, shards: list[Run]) -> None:
    what = f"upstream run {broken.name}"
    if shards:
        what = f"shard {broken.shard}" if broken.shard is not None else f"run {broken.name}"
    if broken.state == "failed":
        run.error = broken.error
        code = broken.reason_code if shards else "upstream_failed"
        move(session, run, "failed", f"{what} failed: {broken.reason}", code)
    else:
        move(session, run, "cancelled", f"{what} was cancelled", "cancelled" if shards else "upstream_cancelled")


def stop(session: Session, run: Run, by: str) -> None:
    """Cancel a locked run: immediately unless a worker holds it, else at its next heartbeat.

    A run that has ended, or is being cancelled, stays as it is.
    """
    if run.state in ENDED or run.cancel_requested_at is not None:
        return
    run.cancel_requested_by = by
    if run.state == "running":
        run.cancel_requested_at = func.clock_timestamp()
        run.reason = f"being cancelled by {by}"
        return
    move(session, run, "cancelled", f"cancelled by {by}", "cancelled")


def _make_shard(session: Session, run: Run, index: int, count: int) -> None:
    shard = Run(
        project_id=run.project_id,
        pipeline_id=run.pipeline_id,
        parent_id=run.id,
        shard=index,
        name=f"{run.name}.{index}",
        kind=run.kind,
        method=run.method,
        config=run.config,
        pool=run.pool,
        priority=run.priority,
        attempt=0,
        failed_attempts=0,
        max_attempts=run.max_attempts,
        interruptions=0,
        max_interruptions=run.max_interruptions,
        reuse=False,
        device_seconds=0.0,
        failed_device_seconds=0.0,
        created_by=run.created_by,
    )
    session.add(shard)
    move(session, shard, "pending", "being set up")
    for row in session.scalars(select(RunInput).where(RunInput.run_id == run.id)).all():
        session.add(
            RunInput(
                run_id=shard.id,
                name=row.name,
                upstream_run_id=row.upstream_run_id,
                upstream_output=row.upstream_output,
                dataset_id=row.dataset_id,
                model_id=row.model_id,
            )
        )
    move(session, shard, "queued", f"shard {index + 1} of {count} is waiting for a worker of pool {run.pool}")
