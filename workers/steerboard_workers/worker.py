"""`python -m steerboard_workers.worker --pool default [--devices 0-7] [--name NAME]`: a worker.

It takes one run of its pool at a time, and next to it a few that need no device, such as those that ask an endpoint.
SIGTERM stops the runs, queues them again without counting the attempt, and ends the worker.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
import time
from typing import Any

from sqlalchemy import Engine

from steerboard.app.wiring import wire
from steerboard.platform.database import make_sessions, new_id, transaction
from steerboard.platform.processes import startup
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.playground.claims import POOL as INTERACTIVE
from steerboard.runs.state import claims, sweeper
from steerboard.runs.state.claims import Claim
from steerboard_workers import celery_app, registration
from steerboard_workers.cpu_threads import stage_share, usable_cores
from steerboard_workers.gpus import GpuWatch
from steerboard_workers.liveness import say_alive, stay_alive
from steerboard_workers.node_follower import Follower
from steerboard_workers.supervisor import process, workspace
from steerboard_workers.supervisor.device_group import DeviceGroup, process_memory
from steerboard_workers.supervisor.execution import Supervisor
from steerboard_workers.supervisor.warm_start import StageParent, stage_parent
from steerboard_workers.work_cleaning import keep_clean
from steerboard_workers.worker_process import (
    LANES,
    NO_SERVERS,
    begin,
    find_servers,
    parse_devices,
    renewal_engine,
    shown_name,
    survive,
    worker_engine,
)

log = logging.getLogger("steerboard.worker")


class Worker:
    """Drains its pool when woken and every `poll_seconds`; keeps its row in `workers` fresh; sweeps."""

    def __init__(self, settings: Settings, *, pool: str, group: DeviceGroup, name: str | None) -> None:
        self.id = new_id()
        self.pool = pool
        self.name = shown_name(name)
        self._settings = settings
        self._group = group
        self._gpus = GpuWatch(group.devices)
        self._sessions = make_sessions(worker_engine(settings))
        self._renewals = make_sessions(renewal_engine(settings))
        self._busy = threading.Lock()
        self._run: Claim | None = None
        self.stopping = threading.Event()
        with transaction(self._sessions) as session:
            threads = stage_share(session, settings, 1)
        log.info("CPU threads of a run's process: %d, of %d cores", threads, usable_cores())
        self._parent = stage_parent(settings, process.environment("", threads, group.devices))
        self._supervisor = self._new_supervisor(group, self._parent)
        self._light_work = threading.Event()
        self._threads = [
            *(threading.Thread(target=self._take_light, name="lane", daemon=True) for _ in range(LANES)),
            threading.Thread(target=self._look, name="ticker", daemon=True),
            threading.Thread(target=self._keep_house, name="housekeeping", daemon=True),
            threading.Thread(target=self._keep_clean, name="cleaning", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Wait until the run in hand is queued again, then leave the list of workers."""
        self.stopping.set()
        self._light_work.set()
        for thread in self._threads:
            thread.join()
        with self._busy:
            survive(lambda: registration.leave(self._sessions, self.id))
        if self._parent is not None:
            self._parent.close()

    def wake(self) -> None:
        """There may be work. Returns when there is no more of it that needs the devices."""
        self._light_work.set()
        survive(self.drain)

    def drain(self) -> None:
        """Claim and execute until the pool has nothing for the devices of this worker. Only one caller at a time does;
        a second one waits, since by then there may be more."""
        with self._busy:
            while (claim := self._claim(without_device=False)) is not None:
                self._run = claim
                survive(self._beat)
                try:
                    self._supervisor.execute(claim)
                finally:
                    self._run = None
                    survive(self._beat)
                sweeper.settle_all(self._sessions)

    def drain_deviceless(self) -> None:
        """The same for runs that need none. For any thread."""
        # One with other threads would start the parent again.
        parent = self._parent if self._group.count == 1 else None
        supervisor = self._new_supervisor(DeviceGroup(), parent)
        while (claim := self._claim(without_device=True)) is not None:
            supervisor.execute(claim)
            sweeper.settle_all(self._sessions)

    def _claim(self, *, without_device: bool) -> Claim | None:
        """Returns None also when the worker should go away."""
        if self.stopping.is_set():
            return None
        with transaction(self._sessions) as session:
            return claims.claim_next(
                session,
                pool=self.pool,
                owner=str(self.id),
                worker=self.name,
                devices=1 if without_device else self._group.count,
                lease_seconds=self._settings.lease_seconds,
                without_device=without_device,
            )

    def _new_supervisor(self, group: DeviceGroup, parent: StageParent | None) -> Supervisor:
        return Supervisor(
            self._sessions,
            ArtifactStore(self._settings.artifact_url),
            self._settings,
            renewals=self._renewals,
            group=group,
            stopping=self.stopping,
            parent=parent,
        )

    def _take_light(self) -> None:
        while not self.stopping.is_set():
            self._light_work.clear()
            survive(self.drain_deviceless)
            self._light_work.wait(self._settings.poll_seconds)

    def _look(self) -> None:
        while not self.stopping.wait(self._settings.poll_seconds):
            self.wake()

    def _keep_house(self) -> None:
        """Heartbeat and sweep, also while a run is in hand."""
        swept = 0.0
        survive(self._beat)
        say_alive(self._settings)
        while not self.stopping.wait(self._settings.heartbeat_seconds):
            survive(self._beat)
            say_alive(self._settings)
            if time.monotonic() - swept >= self._settings.sweep_seconds:
                survive(lambda: sweeper.sweep(self._sessions, self._settings))
                swept = time.monotonic()

    def _keep_clean(self) -> None:
        with self._sessions() as session:
            engine = session.get_bind()
        assert isinstance(engine, Engine)
        keep_clean(engine, self._settings, self.stopping)

    def _beat(self) -> None:
        run = self._run
        gpus = [gpu.as_dict() for gpu in self._gpus.sample()]
        devices: dict[str, Any] = {"ids": self._group.devices, "gpus": gpus}
        devices["memory"] = min((gpu["memory"] for gpu in gpus), default=process_memory(self._settings, self._group))
        if self._group.nodes > 1:
            devices |= {"nodes": self._group.nodes, "rendezvous": self._group.rendezvous}
        with transaction(self._renewals) as session:
            run_id = run.run_id if run else None
            registration.beat(session, self.id, self.name, self.pool, devices=devices, run_id=run_id)


def follow(settings: Settings, group: DeviceGroup) -> None:
    """A further node: until SIGTERM or SIGINT."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    # From a thread of its own: to fetch a large model takes long.
    threading.Thread(target=stay_alive, args=(settings, stopping), name="alive", daemon=True).start()
    sessions = make_sessions(worker_engine(settings))
    renewals = make_sessions(renewal_engine(settings))
    follower = Follower(sessions, renewals, ArtifactStore(settings.artifact_url), settings, group, stopping)
    survive(lambda: workspace.forget_finished(sessions, follower.home))
    follower.follow()


def main() -> None:
    wire()
    parser = argparse.ArgumentParser(prog="steerboard_workers.worker", description="Take runs of one pool.")
    parser.add_argument("--pool", default="default")
    parser.add_argument(
        "--devices", default=[], type=parse_devices, help="ids of the GPUs it owns, such as 0-7 or 0,2; none: the CPU"
    )
    parser.add_argument("--name", help="how it is shown; host and process id by default")
    parser.add_argument("--nodes", type=int, default=1, help="machines that train together as one worker")
    parser.add_argument("--node", type=int, default=0, help="which of them this is; 0 takes the runs")
    parser.add_argument("--rendezvous", default="", help="host:port of node 0, the same for all nodes")
    arguments = parser.parse_args()
    try:
        group = DeviceGroup(arguments.devices, arguments.nodes, arguments.node, arguments.rendezvous)
    except ValueError as error:
        parser.error(str(error))
    if arguments.pool == INTERACTIVE:
        parser.error("the pool `interactive` has a worker of its own: steerboard_workers.interactive.worker")
    settings = find_servers()
    if settings is None:
        parser.error(NO_SERVERS)
    begin(settings, arguments.name)
    if group.node:
        follow(settings, group)
        return
    worker = Worker(settings, pool=arguments.pool, group=group, name=arguments.name)
    app = celery_app.make_app(settings.redis_url, worker.pool, worker.wake, worker.stopping.set)
    worker.start()
    try:
        celery_app.serve(app, worker.name, worker.pool, settings.log_level)
    finally:
        worker.close()


if __name__ == "__main__":
    sys.exit(startup.run_reported(main))
