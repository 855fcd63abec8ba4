"""Works off in the background what requests should not wait for: figures of old datasets, and the search index."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from sqlalchemy.orm import Session, sessionmaker

from steerboard.datasets.search.indexing import index_next
from steerboard.datasets.statistics.service import make_next
from steerboard.platform.database import transaction
from steerboard.platform.storage.disk import database_disk

_ROOM_BYTES = 256 << 20  # more than a segment of the search index takes

log = logging.getLogger(__name__)


def prepare_all(sessions: sessionmaker[Session], stopping: threading.Event) -> None:
    """Prepares datasets until nothing is left, or `stopping` is set. Each dataset and each segment is a transaction of
    its own, so this may end at any moment, and any number of processes may do it at once."""
    failed: set[int] = set()
    steps: tuple[Callable[[Session], bool], ...] = (make_next, lambda session: index_next(session, failed))
    for step in steps:
        more = True
        while more and not stopping.is_set():
            with transaction(sessions) as session:
                more = step(session)


def start(sessions: sessionmaker[Session], every_seconds: float, stopping: threading.Event) -> None:
    """Start in a thread of its own: indexing a large dataset takes minutes, in which lost runs must still be requeued.

    No one waits for its end: what it is at is rolled back and done again later.
    """

    def work() -> None:
        while not stopping.wait(every_seconds):
            try:
                # What can be done later leaves what room there is to what cannot.
                disk = database_disk()
                if disk is None or disk.room > _ROOM_BYTES:
                    prepare_all(sessions, stopping)
            except Exception:
                if not stopping.is_set():
                    log.exception("preparing datasets failed and will be retried")

    threading.Thread(target=work, name="prepare-datasets", daemon=True).start()
