"""Checkpoints in the artifact store: the two newest, whole, of the attempt that holds the run, and of no one else."""

from __future__ import annotations

import datetime as dt
import io
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from sqlalchemy import Engine

from steerboard.maintenance.stored_checkpoints import clear_stored
from steerboard.platform.database import transaction
from steerboard.platform.leases import LeaseLost
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.runs.checkpoints import stored as stored_checkpoints
from steerboard.runs.state import attempt_outcomes
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.state.claims import Claim
from steerboard.runs.tables import Run, RunLog
from steerboard_contracts.stage.checkpoints import checkpoint_name
from steerboard_workers.stages.training.checkpoints import Checkpoints
from steerboard_workers.supervisor.checkpoints.fetch import fetch_newest
from steerboard_workers.supervisor.checkpoints.uploads import CheckpointUploads
from steerboard_workers.supervisor.workspace import Workspace
from support.patience import wait_until
from support.rows.run_world import World
from support.servers.s3_server import BUCKET, Fault, S3Server

SECONDS = 20.0
NOW = dt.timedelta(0)


class Machine:
    """An attempt on a machine with a disk of its own, and what its stage saves there."""

    def __init__(self, world: World, store: ArtifactStore, claim: Claim, home: Path) -> None:
        self.claim = claim
        self._world, self._store = world, store
        self.workspace = Workspace(home, claim)
        self.workspace.open()
        self._checkpoints = Checkpoints(self.workspace.checkpoints, claim.attempt, ["s"], lambda _: None)
        self.uploads = CheckpointUploads(world.sessions, store, claim, self.workspace)

    def save(self, *steps: int) -> None:
        for step in steps:
            tensors = [("weight.w", torch.full((64, 64), float(step)))]
            self._checkpoints.save(step, tensors, {"random": torch.arange(step)}, {"history": []})
            self.uploads.offer(step)

    def store(self, *steps: int) -> None:
        """One after the other, as they are saved every few minutes."""
        for step in steps:
            self.save(step)
            self.uploads.settle(SECONDS)

    def fetch(self) -> int | None:
        """The step that a stage would resume from."""
        fetch_newest(self._world.sessions, self._store, self.claim, self.workspace.checkpoints)
        restored = self._checkpoints.load()
        if restored is not None:
            assert torch.equal(dict(restored.tensors())["weight.w"], torch.full((64, 64), float(restored.step)))
        return restored.step if restored else None

    def close(self) -> None:
        self.uploads.close()
        self.workspace.holds.close()


class Cluster:
    def __init__(self, world: World, s3: S3Server, folder: Path) -> None:
        self.world, self.s3, self._folder = world, s3, folder
        self.artifacts = ArtifactStore(f"s3://{BUCKET}/team")
        self.run_id = world.create("sft")
        self.machines: list[Machine] = []

    def attempt(self) -> Machine:
        """The next one, after the one before was lost."""
        if self.machines:
            self.world.act(
                self.machines[-1].claim, lambda session, run: attempt_outcomes.fail(session, run, LOST, 0.0, 0.0)
            )
        claim = self.world.claim()
        assert claim is not None
        machine = Machine(self.world, self.artifacts, claim, self._folder / f"machine-{claim.attempt}")
        machine.uploads.__enter__()
        self.machines.append(machine)
        return machine

    def known(self) -> list[str]:
        """Newest first."""
        with transaction(self.world.sessions) as session:
            checkpoints = stored_checkpoints.stored(session, self.run_id)
            return [checkpoint_name(checkpoint.attempt, checkpoint.step) for checkpoint in checkpoints]

    def files(self) -> set[str]:
        """Folders of checkpoints in the store."""
        start = f"team/checkpoints/{self.run_id}/"
        return {name.removeprefix(start).partition("/")[0] for name in self.s3.objects() if name.startswith(start)}

    def damage(self, name: str, change: Callable[[bytes], bytes]) -> None:
        where = f"checkpoints/{self.run_id}/{name}/tensors-00001.safetensors"
        with self.artifacts.storage.open(where) as file:
            content = change(file.read())
        self.artifacts.storage.put(where, io.BytesIO(content))

    def lines(self) -> list[str]:
        with transaction(self.world.sessions) as session:
            return [line.message for line in session.query(RunLog).order_by(RunLog.id)]


LOST = Failure("worker_lost", "It was lost.", retryable=True)


@pytest.fixture
def cluster(world: World, s3: S3Server, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(world, s3, tmp_path)
    yield made
    for machine in made.machines:
        machine.close()


def test_the_two_newest_are_kept(cluster: Cluster) -> None:
    cluster.attempt().store(10, 20, 30)
    assert cluster.known() == ["a1-step-00000030", "a1-step-00000020"]
    assert cluster.files() == set(cluster.known())


def test_while_one_is_on_its_way_only_the_newest_waits_and_the_stage_goes_on(cluster: Cluster) -> None:
    machine, slow = cluster.attempt(), threading.Event()
    cluster.s3.faults.append(Fault("PUT", 1, until=slow))
    machine.save(10)
    wait_until(lambda: not cluster.s3.faults[0].times)
    machine.save(20, 30, 40, 50)  # its own disk keeps the last two of these
    slow.set()
    machine.uploads.settle(SECONDS)
    assert cluster.known() == ["a1-step-00000050", "a1-step-00000010"]
    assert cluster.attempt().fetch() == 50


def test_an_older_attempts_late_upload_replaces_nothing(cluster: Cluster) -> None:
    late, slow = cluster.attempt(), threading.Event()
    late.store(10)
    cluster.s3.faults.append(Fault("PUT", 1, until=slow))
    late.save(90)
    wait_until(lambda: not cluster.s3.faults[0].times)
    newer = cluster.attempt()
    assert newer.fetch() == 10
    newer.store(20, 30)
    before = cluster.known()
    slow.set()
    late.uploads.settle(SECONDS)
    assert cluster.known() == before == ["a2-step-00000030", "a2-step-00000020"]
    assert cluster.files() == set(before)
    assert cluster.attempt().fetch() == 30


@pytest.mark.parametrize("change", [lambda data: data[:-1] + b"\0\0", lambda data: data[:100]])
def test_a_damaged_one_is_not_used_and_the_one_before_is(cluster: Cluster, change: Callable[[bytes], bytes]) -> None:
    cluster.attempt().store(10, 20)
    cluster.damage("a1-step-00000020", change)
    second = cluster.attempt()
    assert second.fetch() == 10
    assert any("a1-step-00000020 of the artifact store is not used" in line for line in cluster.lines())
    second.store(15)
    assert cluster.known() == ["a2-step-00000015", "a1-step-00000010"]


def test_one_that_is_gone_from_the_store_is_not_used(cluster: Cluster) -> None:
    cluster.attempt().store(10, 20)
    cluster.artifacts.storage.remove_folder(f"checkpoints/{cluster.run_id}/")
    assert cluster.attempt().fetch() is None


def test_what_changed_on_the_disk_on_its_way_is_not_stored(cluster: Cluster) -> None:
    machine = cluster.attempt()
    machine.store(10)
    path = machine._checkpoints.save(20, [("w", torch.ones(4))], {}, {})
    with (path / "state.pt").open("r+b") as file:
        file.write(b"x")
    machine.uploads.offer(20)
    machine.uploads.settle(SECONDS)
    assert cluster.known() == ["a1-step-00000010"]
    assert any("step 20 is on this worker's disk only" in line for line in cluster.lines())


def test_a_store_that_is_away_costs_a_checkpoint_and_the_next_one_is_stored(cluster: Cluster) -> None:
    machine = cluster.attempt()
    cluster.s3.faults.append(Fault("PUT", 1, status="403 Forbidden", body=b"<Error><Code>AccessDenied</Code></Error>"))
    machine.store(10)
    assert cluster.known() == []
    machine.store(20)
    assert cluster.known() == ["a1-step-00000020"]
    assert any("artifact_store_refused" in line for line in cluster.lines())


def test_an_attempt_that_ends_gives_up_what_is_on_its_way(cluster: Cluster) -> None:
    machine, slow = cluster.attempt(), threading.Event()
    cluster.s3.faults.append(Fault("PUT", 1, until=slow))
    machine.save(10)
    wait_until(lambda: not cluster.s3.faults[0].times)
    leaving = threading.Thread(target=machine.uploads.close)
    leaving.start()
    wait_until(machine.uploads._closed.is_set)
    slow.set()
    leaving.join()
    assert not machine.uploads._thread.is_alive()
    assert cluster.known() == []
    assert cluster.lines() == []


def test_a_disk_that_has_a_newer_one_is_not_overwritten(cluster: Cluster) -> None:
    cluster.attempt().store(10)
    second = cluster.attempt()
    second.save(20)  # only here
    assert second.fetch() == 20
    assert [path.name for path in second.workspace.checkpoints.iterdir()] == ["a2-step-00000020"]


def test_a_link_in_a_checkpoint_leads_nowhere(cluster: Cluster, tmp_path: Path) -> None:
    """The names are those of a process that runs other people's models."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"key")
    machine = cluster.attempt()
    path = machine._checkpoints.save(10, [("w", torch.ones(4))], {}, {})
    (path / "state.pt").unlink()
    os.symlink(secret, path / "state.pt")
    machine.uploads.offer(10)
    machine.uploads.settle(SECONDS)
    assert cluster.known() == []
    assert b"key" not in cluster.s3.objects().values()


class Killed(BaseException):
    """The supervisor ends here: nothing of it runs any more."""


@pytest.mark.parametrize("where", ["register", "clear"])
def test_a_supervisor_killed_between_upload_and_registration_leaves_a_run_that_goes_on(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    first = cluster.attempt()
    first.store(10, 20)

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(stored_checkpoints, where, die)
        patch.setattr(threading, "excepthook", lambda _: None)
        first.save(30)
        wait_until(lambda: not first.uploads._thread.is_alive())
    assert "a1-step-00000030" in cluster.files()
    second = cluster.attempt()
    assert second.fetch() == (20 if where == "register" else 30)
    second.store(40)
    assert cluster.files() == set(cluster.known())


def test_gc_removes_what_ended_runs_kept(cluster: Cluster, engine: Engine) -> None:
    cluster.attempt().store(10, 20)
    assert clear_stored(engine, cluster.artifacts, age=NOW).checkpoints == 0
    cluster.world.act(
        cluster.machines[-1].claim,
        lambda session, run: attempt_outcomes.fail(session, run, Failure("bad_input", "It is bad."), 0.0, 0.0),
    )
    assert clear_stored(engine, cluster.artifacts, age=dt.timedelta(days=1)).checkpoints == 0
    tried = clear_stored(engine, cluster.artifacts, age=NOW, dry_run=True)
    assert (tried.checkpoints, len(cluster.files())) == (2, 2)
    assert clear_stored(engine, cluster.artifacts, age=NOW) == tried
    assert (cluster.known(), cluster.files()) == ([], set())


def test_gc_removes_what_a_crash_left_and_nothing_that_is_on_its_way(cluster: Cluster, engine: Engine) -> None:
    cluster.attempt().store(10)
    where = stored_checkpoints.folder_of(cluster.run_id, "a1-step-00000020")
    cluster.artifacts.storage.put(f"{where}state.pt", io.BytesIO(b"half"))
    assert clear_stored(engine, cluster.artifacts, age=NOW).checkpoints == 0
    done = clear_stored(engine, cluster.artifacts, age=NOW, upload_age=NOW)
    assert (done.checkpoints, done.bytes) == (1, 4)
    assert cluster.files() == set(cluster.known()) == {"a1-step-00000010"}


def test_a_lost_lease_registers_nothing(cluster: Cluster) -> None:
    first = cluster.attempt()
    cluster.attempt()
    with pytest.raises(LeaseLost), transaction(cluster.world.sessions) as session:
        stored_checkpoints.register(session, first.claim, 10, [])
    with transaction(cluster.world.sessions) as session:
        assert session.get_one(Run, cluster.run_id).attempt == 2


def test_a_folder_of_the_home_does_not_outlive_it(tmp_path: Path) -> None:
    assert not ArtifactStore(f"file://{tmp_path}/artifacts").outlives(tmp_path)
    assert ArtifactStore(f"file://{tmp_path}/shared").outlives(tmp_path / "home")
    assert ArtifactStore(f"s3://{BUCKET}/team").outlives(tmp_path)
