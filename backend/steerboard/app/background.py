"""Background work of the API: the sweeper, the runner of imports, senders of notices, and exporters to trackers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from fastapi import FastAPI
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import service as accounts
from steerboard.datasets import background
from steerboard.datasets.imports.execution.runner import ImportRunner
from steerboard.notices import delivery
from steerboard.openai_api import background as openai_api
from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard.runs.state import sweeper
from steerboard.trackers.exporting.exporters import exporters

log = logging.getLogger("steerboard.up")

_FORGET_SECONDS = 600.0


def start(app: FastAPI, sessions: sessionmaker[Session], settings: Settings) -> Callable[[], None]:
    """Returns how to stop. Endpoints find the imports' runner in the app's state, and wake it."""
    stop_sweeping = sweep(sessions, settings)
    app.state.import_runner = ImportRunner(sessions, settings).start()
    if settings.warm_start:
        threading.Thread(target=app.state.import_processes.warm, args=(settings,), daemon=True).start()
    senders = delivery.senders(sessions, settings, app.state.secrets)
    senders.start()
    stop_jobs = openai_api.start(sessions, settings)
    exporting = exporters(sessions, settings, app.state.secrets)
    exporting.start()

    def stop() -> None:
        stop_jobs()
        app.state.import_runner.stop()
        app.state.import_processes.close()
        stop_sweeping()
        senders.stop()
        exporting.stop()

    return stop


def sweep(sessions: sessionmaker[Session], settings: Settings) -> Callable[[], None]:
    """Requeue what lost its worker, also while no worker is there to do it, and forget old sessions, links and
    attempts. Returns how to stop."""
    stopping = threading.Event()

    def go_on() -> None:
        forget_at = 0.0
        while not stopping.wait(settings.sweep_seconds):
            try:
                sweeper.sweep(sessions, settings)
                if time.monotonic() >= forget_at:
                    with transaction(sessions) as session:
                        accounts.forget_old(session)
                        delivery.forget_old(session)
                        openai_api.forget_left_behind(session)
                    forget_at = time.monotonic() + _FORGET_SECONDS
            except Exception:
                log.exception("sweeping failed and will be retried")

    thread = threading.Thread(target=go_on, name="sweeper", daemon=True)
    thread.start()
    background.start(sessions, settings.sweep_seconds, stopping)
    # Imported here, so that no other command waits for the statistics.
    from steerboard.evaluation import contamination

    contamination.start(sessions, settings.sweep_seconds, stopping)

    def stop() -> None:
        stopping.set()
        thread.join()

    return stop
