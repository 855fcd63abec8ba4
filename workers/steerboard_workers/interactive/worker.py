"""`python -m steerboard_workers.interactive.worker [--devices 0] [--name NAME]`: the playground's worker.

It answers comparisons, the oldest first, and measures control curves in between. SIGTERM gives back what it serves,
without counting the attempt, and ends it.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from contextlib import suppress

import redis
from sqlalchemy.exc import SQLAlchemyError

from steerboard.app.wiring import wire
from steerboard.platform.database import make_sessions, transaction
from steerboard.platform.events.redis_url import connect
from steerboard.platform.leases import LeaseLost
from steerboard.platform.processes import startup
from steerboard.platform.settings import Settings
from steerboard.playground import claims
from steerboard.playground.claims import CHANNEL, POOL
from steerboard_workers.interactive.leases import LeaseHolder
from steerboard_workers.interactive.serving import Serving
from steerboard_workers.worker_process import NO_SERVERS, begin, find_servers, parse_devices, survive, worker_engine

log = logging.getLogger("steerboard.interactive")

# Training that shares the machine goes first where both want a core.
NICENESS = 5


class InteractiveWorker:
    """It computes nothing itself: threads serve comparisons, keep the leases, listen to Redis, and talk to endpoints;
    models are in processes of their own."""

    def __init__(self, settings: Settings, *, devices: list[str], name: str | None = None) -> None:
        self.stopping = threading.Event()
        self.wake = threading.Event()
        self._settings = settings
        self._sessions = make_sessions(worker_engine(settings))
        self._lease_holder = LeaseHolder(self._sessions, settings, devices, name)

    def run(self) -> None:
        """Serves until `stop`."""
        self._lease_holder.start()
        threading.Thread(target=self._listen, name="listener", daemon=True).start()
        try:
            self._serve()
        finally:
            survive(self._give_back)
            self._lease_holder.close()

    def stop(self) -> None:
        self.stopping.set()
        self.wake.set()

    def _serve(self) -> None:
        serving = Serving(self._settings, self._sessions, self._lease_holder, self.stopping, self.wake)
        try:
            while not self.stopping.is_set():
                try:
                    serving.run()
                except SQLAlchemyError as error:
                    log.warning("the database does not answer: %s", error)
                    self.stopping.wait(1.0)
                except Exception:
                    log.exception("the worker continues after an unexpected error")
                    self.stopping.wait(1.0)
        finally:
            serving.close()

    def _give_back(self) -> None:
        for claim in self._lease_holder.held():
            with suppress(LeaseLost), transaction(self._sessions) as session:
                claims.release(session, claim)

    def _listen(self) -> None:
        """Wake at each message. Without Redis the worker still looks every `poll_seconds`."""
        while not self.stopping.is_set():
            try:
                with connect(self._settings.redis_url) as client, client.pubsub() as subscription:
                    subscription.subscribe(CHANNEL)
                    while not self.stopping.is_set():
                        if subscription.get_message(timeout=1.0):
                            self.wake.set()
            except (redis.RedisError, OSError, ValueError):
                self.stopping.wait(2.0)


def main() -> None:
    wire()
    parser = argparse.ArgumentParser(prog="steerboard_workers.interactive.worker", description="Serve the playground.")
    parser.add_argument("--pool", default=POOL, choices=[POOL])
    parser.add_argument("--devices", default=[], type=parse_devices, help="id of the GPU it owns, such as 0")
    parser.add_argument("--name", help="how it is shown; host and process id by default")
    arguments = parser.parse_args()
    settings = find_servers()
    if settings is None:
        parser.error(NO_SERVERS)
    begin(settings, arguments.name)
    if arguments.devices:  # models' processes see no others
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(arguments.devices)
    os.nice(NICENESS)
    # A shared stage parent would refuse every model: these have less of the environment, and a lower priority.
    settings = settings.model_copy(update={"stage_parent": None})
    worker = InteractiveWorker(settings, devices=arguments.devices, name=arguments.name)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stop())
    worker.run()


if __name__ == "__main__":
    sys.exit(startup.run_reported(main))
