"""Runs with the API: claims queued imports, gives each its own process, and renews their leases.

The processes run under guardians, so they end with this one, whichever way it ends; then the leases run out, and
another runner starts these imports again from their beginning.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session, sessionmaker

from steerboard.datasets import hooks
from steerboard.datasets.imports.execution import claims
from steerboard.datasets.imports.execution.sweep import sweep
from steerboard.datasets.imports.files import ImportFiles
from steerboard.platform.database import transaction
from steerboard.platform.leases import Lease
from steerboard.platform.processes.child_process import Guarded, GuardedSpec, log_tail
from steerboard.platform.settings import Settings

log = logging.getLogger(__name__)

AT_ONCE = 2
_IDLE_SECONDS = 1.0
_BUSY_SECONDS = 0.2
_SWEEP_SECONDS = 600.0


@dataclass
class _Job:
    lease: Lease
    process: Guarded
    renew_at: float


class ImportRunner:
    """`start` it once; `wake` it when there is work; `stop` gives unfinished work back."""

    def __init__(self, sessions: sessionmaker[Session], settings: Settings) -> None:
        self._sessions = sessions
        self._settings = settings
        self._files = ImportFiles(settings.artifact_url)
        self._jobs: list[_Job] = []
        self._stopping = False
        self._wanted = threading.Event()
        self._thread = threading.Thread(target=self._run, name="imports", daemon=True)

    def start(self) -> ImportRunner:
        self._thread.start()
        return self

    def wake(self) -> None:
        """Look for work now."""
        self._wanted.set()

    def stop(self) -> None:
        self._stopping = True
        self._wanted.set()
        self._thread.join()

    def _run(self) -> None:
        sweep_at = 0.0
        while not self._stopping:
            try:
                self._tend()
                while len(self._jobs) < AT_ONCE and self._take():
                    pass
                if time.monotonic() >= sweep_at:
                    sweep_at = time.monotonic() + _SWEEP_SECONDS
                    sweep(self._sessions, self._files)
            except Exception:
                log.exception("supervising imports failed and will be retried")
            self._wanted.wait(_BUSY_SECONDS if self._jobs else _IDLE_SECONDS)
            self._wanted.clear()
        for job in self._jobs:
            job.process.stop()
            try:
                with transaction(self._sessions) as session:
                    claims.give_back(session, job.lease, 0.0, tried=False)
            except Exception:
                log.exception("import %s could not be given back; its lease will run out", job.lease.id)

    def _take(self) -> bool:
        with transaction(self._sessions) as session:
            lease = claims.claim_next(session, self._settings.lease_seconds, self._settings.max_attempts)
        if lease is None:
            return False
        command = [
            sys.executable,
            "-m",
            hooks.import_process(),
            "import",
            str(lease.id),
            str(lease.attempt),
            str(lease.owner),
        ]
        spec = GuardedSpec(
            name=f"import {lease.id}",
            command=command,
            log=_log_file(self._settings.home),
            # A transaction that is cut off is rolled back; there is nothing to do in order.
            stop=[(signal.SIGKILL, 5.0)],
        )
        renew_at = time.monotonic() + self._settings.heartbeat_seconds
        self._jobs.append(_Job(lease, Guarded(spec), renew_at))
        return True

    def _tend(self) -> None:
        for job in list(self._jobs):
            status = job.process.status()
            if status is not None:
                self._jobs.remove(job)
                if status != 0:
                    tail = log_tail(job.process.spec.log)
                    log.error("%s ended with status %d; it will be retried\n%s", job.process.spec.name, status, tail)
                with transaction(self._sessions) as session:
                    claims.give_back(session, job.lease, self._settings.retry_seconds, tried=True)
            elif time.monotonic() >= job.renew_at:
                job.renew_at = time.monotonic() + self._settings.heartbeat_seconds
                with transaction(self._sessions) as session:
                    ours = claims.renew(session, job.lease, self._settings.lease_seconds)
                if not ours:
                    self._jobs.remove(job)
                    job.process.stop()


def _log_file(home: Path) -> Path:
    folder = home / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "imports.log"
