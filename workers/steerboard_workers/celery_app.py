"""The Celery side of a worker: one queue (its pool), one task that means "there is work".

A message carries no work. It is acknowledged before anything is done, so losing it, repeating it or delivering it
late changes nothing: the task looks into Postgres, and so does the ticker every few seconds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from celery import Celery, signals
from celery.platforms import SecurityWarning

from steerboard.runs.state.wakeups import WAKE_TASK, broker_url


def make_app(redis_url: str, pool: str, look: Callable[[], None], stop: Callable[[], None]) -> Celery:
    """An app whose `wake` task calls `look`. `stop` is called when Celery begins its shutdown."""
    app = Celery("steerboard", broker=broker_url(redis_url))
    app.conf.update(
        task_default_queue=pool,
        task_acks_late=False,
        task_ignore_result=True,
        worker_prefetch_multiplier=1,
        # A busy worker leaves messages in the queue, for idle ones to take.
        worker_disable_prefetch=True,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_enable_remote_control=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "socket_connect_timeout": 5.0,
            "socket_timeout": 10.0,
            "socket_keepalive": True,
            "retry_on_timeout": True,
            # Pings of the connection that waits for wake-ups: one that no one answers is given up after some ten
            # seconds.
            "health_check_interval": 5,
        },
    )

    def wake(pool: str) -> None:
        look()

    def shutting_down(**_: object) -> None:
        stop()

    app.task(wake, name=WAKE_TASK)
    signals.worker_shutting_down.connect(shutting_down, weak=False)
    return app


def serve(app: Celery, name: str, pool: str, log_level: str) -> None:
    """Consume wake-ups until SIGTERM or SIGINT; outlives any outage of the broker."""
    # About pickled messages from strangers as root; only JSON is accepted here, and only the name of a pool is read.
    warnings.simplefilter("ignore", SecurityWarning)
    worker = app.Worker(
        hostname=name,
        pool="threads",
        concurrency=1,
        queues=[pool],
        loglevel=log_level,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    )
    worker.start()
