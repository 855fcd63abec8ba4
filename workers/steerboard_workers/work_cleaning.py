"""A worker's own disk is cleaned while it runs, so no one has to remember to."""

from __future__ import annotations

import datetime as dt
import logging
import threading

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from steerboard.maintenance import work_folders
from steerboard.platform.settings import Settings

log = logging.getLogger("steerboard.worker")

EVERY_SECONDS = 3600.0


def keep_clean(engine: Engine, settings: Settings, stopping: threading.Event, every: float = EVERY_SECONDS) -> None:
    """Remove the folders of runs that succeeded, and of those that ended in another way `work_days` ago, at once and
    then each hour, until `stopping`."""
    while True:
        try:
            done = work_folders.clear(
                engine, settings.home, settings.cache_mb, age=dt.timedelta(days=settings.work_days)
            )
            if done.folders:
                log.info("removed %d folders of runs that have ended, %.1f MB", done.folders, done.bytes / 1e6)
        except (SQLAlchemyError, OSError) as error:
            log.warning("folders of runs that have ended are not removed: %s", error)
        if stopping.wait(every):
            return
