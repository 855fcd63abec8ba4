"""Logs: text for people, or one JSON object a line (`STEERBOARD_LOG_FORMAT=json`) with its context.

structlog formats the lines of `logging` with as much code, and imports rich and 0.3 s with it.
"""

from __future__ import annotations

import datetime as dt
import logging
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType, TracebackType

import orjson

from steerboard.platform.settings import Settings
from steerboard_files.texts import storable

Value = str | int | float | None
_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_bound: ContextVar[Mapping[str, Value]] = ContextVar("steerboard_logs", default=MappingProxyType({}))


@contextmanager
def bound(**values: Value) -> Iterator[None]:
    """Every line logged below carries `values`: `run_id`, `attempt`, `request_id`."""
    token = _bound.set({**_bound.get(), **values})
    try:
        yield
    finally:
        _bound.reset(token)


def bind(**values: Value) -> None:
    """The same for the rest of this thread's or task's context."""
    _bound.set({**_bound.get(), **values})


def fields(**values: Value) -> dict[str, Mapping[str, Value]]:
    """`extra=` of one line, for what belongs to that line alone."""
    return {"steerboard_fields": values}


class JsonLines(logging.Formatter):
    """One object a line: time (UTC), level, logger, message, what is bound, and the traceback where there is one.

    `always`: what every line carries.
    """

    def __init__(self, always: Mapping[str, Value] | None = None) -> None:
        super().__init__()
        self._always = always or {}

    def format(self, record: logging.LogRecord) -> str:
        document: dict[str, object] = {
            "time": dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **self._always,
            **_bound.get(),
            **getattr(record, "steerboard_fields", {}),
        }
        if record.exc_info:
            document["exception"] = self.formatException(record.exc_info)
        # A message may repeat what someone sent, also text that is not valid Unicode.
        return orjson.dumps(storable(document)).decode()


def configure(settings: Settings, **always: Value) -> None:
    """Configures the logs of a server process, on its standard error; what Python itself would print there is logged
    too. `always` is what each line of JSON carries."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines(always) if settings.log_format == "json" else logging.Formatter(_TEXT))
    logging.basicConfig(level=settings.log_level, handlers=[handler], force=True)
    # Requests of our own clients are not worth logging.
    for name in ("httpx", "httpcore", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda caught: logging.getLogger("steerboard").critical(
        "a thread ended: %s", caught.exc_value, exc_info=caught.exc_value
    )


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    logging.getLogger("steerboard").critical("%s: %s", kind.__name__, error, exc_info=(kind, error, trace))
