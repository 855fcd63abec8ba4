"""Wake-ups for the pools: "pool X has work", nothing more.

They are hints. Nothing waits for them, an outage of the broker loses none of the work, and the sweeper sends again
what got lost, so everything here swallows connection errors after logging them.
"""

from __future__ import annotations

import logging
import queue
import threading
from functools import cache

import redis
from celery import Celery
from kombu.exceptions import OperationalError
from sqlalchemy import event
from sqlalchemy.orm import Session

from steerboard.platform.events.redis_url import connect
from steerboard.platform.settings import get_settings

log = logging.getLogger(__name__)

WAKE_TASK = "steerboard.wake"
_POOLS = "steerboard.wakeups"
_CONNECT_SECONDS = 2.0


def broker_url(redis_url: str) -> str:
    """The URL as Celery writes it: sockets are `redis+socket:///path?virtual_host=0` there."""
    if not redis_url.startswith("unix://"):
        return redis_url
    return "redis+socket://" + redis_url.removeprefix("unix://").replace("?db=", "?virtual_host=")


@cache
def producer(redis_url: str) -> Celery:
    """A Celery app that only sends."""
    app = Celery("steerboard", broker=broker_url(redis_url), set_as_current=False)
    app.conf.update(
        task_ignore_result=True,
        broker_transport_options={"socket_connect_timeout": _CONNECT_SECONDS, "socket_timeout": _CONNECT_SECONDS},
    )
    return app


def publish(redis_url: str, pool: str) -> bool:
    """Send one wake-up now. Returns whether the broker took it."""
    try:
        producer(redis_url).send_task(WAKE_TASK, args=[pool], queue=pool, retry=False, ignore_result=True)
    except (OperationalError, redis.RedisError, OSError) as error:
        log.warning("no wake-up for pool %s: %s; workers will find the work by polling", pool, error)
        return False
    return True


def waiting(redis_url: str, pool: str) -> int | None:
    """Wake-ups of a pool that no worker has taken yet; None while the broker is away."""
    try:
        with connect(redis_url) as client:
            return int(client.llen(pool))
    except redis.RedisError:
        return None


class _Publisher:
    """Sends from a thread of its own, so that a request never waits for the broker."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def put(self, redis_url: str, pool: str) -> None:
        self._queue.put((redis_url, pool))
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._send, name="wakeups", daemon=True)
                self._thread.start()

    def _send(self) -> None:
        while True:
            publish(*self._queue.get())


_publisher = _Publisher()


def after_commit(session: Session, pool: str) -> None:
    """Wake `pool` when, and only when, the transaction commits."""
    session.info.setdefault(_POOLS, []).append(pool)


@event.listens_for(Session, "after_commit")
def _committed(session: Session) -> None:
    if session.in_nested_transaction():  # a savepoint ended, not the transaction
        return
    pools = session.info.pop(_POOLS, [])
    if pools:
        url = get_settings().redis_url
        for pool in dict.fromkeys(pools if url else []):
            _publisher.put(url, pool)


@event.listens_for(Session, "after_rollback")
def _rolled_back(session: Session) -> None:
    if not session.in_nested_transaction():
        session.info.pop(_POOLS, None)
