"""Collects a stage's events and writes them about once a second, within bounds."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from sqlalchemy.exc import OperationalError

from steerboard.runs.progress_log import Batch
from steerboard_contracts.stage.events import (
    Changed,
    Checkpointed,
    HealthFound,
    Inspected,
    Log,
    Metrics,
    Prepared,
    Probed,
    Progress,
    Sampled,
    Spent,
    StageEvent,
)

log = logging.getLogger(__name__)

FLUSH_SECONDS = 1.0
_LINES_A_RUN = 20_000
_LINES_A_BATCH = 2_000


class Journal:
    """`write` stores one batch. `line_limit` bounds the log of an attempt; the rest is counted, not kept."""

    def __init__(self, write: Callable[[Batch], None], line_limit: int = _LINES_A_RUN) -> None:
        self._write = write
        self._line_limit = line_limit
        self._lines = 0
        self._batch = Batch()
        self._written = 0.0

    def add(self, event: StageEvent) -> None:
        if isinstance(event, Progress):
            self._batch.progress = event.model_dump(mode="json", exclude={"type"})
        elif isinstance(event, Metrics):
            self._batch.metrics.update({(name, event.step): value for name, value in event.values.items()})
        elif isinstance(event, Probed):
            self._batch.probed[event.step] = event
        elif isinstance(event, Sampled):
            self._batch.sampled[event.step, event.group.place] = event
        elif isinstance(event, Inspected):
            self._batch.inspected[event.place] = event
        elif isinstance(event, Prepared):
            self._batch.prepared = event
        elif isinstance(event, Changed | HealthFound):
            self._batch.watched.append(event)
        elif isinstance(event, Spent):
            self._batch.phases = event.phases
        elif isinstance(event, Log):
            self._log(event.level, event.message)
        elif isinstance(event, Checkpointed):
            self._log("info", f"checkpoint at step {event.step}")
        if len(self._batch.logs) >= _LINES_A_BATCH:
            self.flush()

    def flush_when_due(self) -> None:
        if time.monotonic() - self._written >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what has gathered. What cannot be written while the database is away is written with the next batch."""
        self._written = time.monotonic()
        try:
            self.flush_or_raise()
        except OperationalError as error:
            log.warning("progress cannot be written yet: %s", error)

    def flush_or_raise(self) -> None:
        if self._batch:
            self._write(self._batch)
            self._batch = Batch()

    def _log(self, level: str, message: str) -> None:
        self._lines += 1
        if self._lines < self._line_limit:
            self._batch.logs.append((level, message))
        elif self._lines == self._line_limit:
            self._batch.logs.append(("warning", f"further lines are not kept: {self._line_limit} is the limit"))
