"""How many CPU threads a process may use, so that the workers of a machine share its cores."""

from __future__ import annotations

import datetime as dt
import math
import os
import socket
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.platform.settings import Settings
from steerboard.playground.claims import POOL as INTERACTIVE
from steerboard.runs.tables import Run, RunAttempt, WorkerRow

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")

_SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
_QUOTA, _OLD_QUOTA = "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_{}_us"


def usable_cores() -> int:
    """Physical cores that this process may run on, within the container's limit. Like torch by default, it counts two
    hardware threads of a core once."""
    cores = {_core(cpu) for cpu in os.sched_getaffinity(0)}
    quota = _quota()
    return len(cores) if quota is None else min(len(cores), quota)


def stage_share(session: Session, settings: Settings, processes: int) -> int:
    """Threads of each of a stage's `processes` on this machine, unless the operator has set them."""
    workers = max(_workers_here(session, settings), settings.machine_workers)
    return settings.stage_threads or max(1, usable_cores() // (workers * processes))


def settle_threads(session: Session, settings: Settings, run: Run, processes: int) -> int:
    """Threads of each process of the run's current attempt, noted with it. A run keeps the number that it began with:
    only then does it resume bit for bit."""
    first = session.scalar(
        select(RunAttempt.threads)
        .where(RunAttempt.run_id == run.id, RunAttempt.threads.is_not(None))
        .order_by(RunAttempt.attempt)
        .limit(1)
    )
    if first is None or settings.stage_threads:
        threads = stage_share(session, settings, processes)
    else:
        threads = min(first, usable_cores())
    session.get_one(RunAttempt, (run.id, run.attempt)).threads = threads
    return threads


def model_share(session: Session, settings: Settings) -> int:
    """Threads of a model's process in the playground. Training keeps at least as many cores."""
    workers = max(_workers_here(session, settings), settings.machine_workers)
    return max(1, usable_cores() // (workers + 1))


def _workers_here(session: Session, settings: Settings) -> int:
    """Living workers on this machine, whose runs compete for its cores; at least 1. The playground's worker is left
    out: it yields to them by its priority."""
    fresh = func.clock_timestamp() - dt.timedelta(seconds=settings.lease_seconds)
    living = select(func.count()).where(
        WorkerRow.host == socket.gethostname(), WorkerRow.pool != INTERACTIVE, WorkerRow.heartbeat_at > fresh
    )
    return max(1, session.scalar(living) or 0)


def _core(cpu: int) -> str:
    """What a CPU's hardware threads have in common."""
    try:
        return Path(_SIBLINGS.format(cpu)).read_text().strip()
    except OSError:
        return str(cpu)


def _quota() -> int | None:
    """Whole cores of the container's limit, rounded up; None without a limit."""
    try:
        text = Path(_QUOTA).read_text()
    except OSError:
        text = _old_quota()
    try:
        quota, period = map(int, text.split())
    except ValueError:
        return None  # there is no such group, or its limit is `max`
    return math.ceil(quota / period) if quota > 0 else None


def _old_quota() -> str:
    """The quota in the form of the newer file."""
    try:
        return " ".join(Path(_OLD_QUOTA.format(name)).read_text() for name in ("quota", "period"))
    except OSError:
        return ""
