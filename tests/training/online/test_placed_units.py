"""What surrounds units apart: lost processes, lost nodes, folders, addresses and memory, without Ray itself."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file

from steerboard_contracts.errors import OutOfMemory
from steerboard_contracts.placement import NodeShare, RoleNodes, Unit
from steerboard_workers.engines.vllm.watchdog import EngineFailed
from steerboard_workers.stages.roles import cluster, node_folder, ray_node, shared_memory
from steerboard_workers.stages.roles.cluster import Cluster
from steerboard_workers.stages.roles.node_folder import NodeFolder
from steerboard_workers.stages.roles.node_missing import NodeMissing
from steerboard_workers.stages.roles.placed_unit import PlacedUnit
from steerboard_workers.stages.roles.processes import RoleProcess

UNIT = Unit(role="rollout", number=0)


class Lost(Exception): ...


class Killed(Exception): ...


class Placed:
    """A cluster of which processes die: each works for so many calls."""

    ray = SimpleNamespace(exceptions=SimpleNamespace(RayActorError=Lost, OutOfMemoryError=Killed, RayError=Exception))

    def __init__(self, *lives: int) -> None:
        self.lives = list(lives)
        self.done: list[list[str]] = []

    def start(self, unit: Unit) -> SimpleNamespace:
        left, done = self.lives.pop(0), []
        self.done.append(done)

        def remote(method: str, *arguments: object) -> object:
            if len(done) == left:
                return Lost()
            done.append(method)
            return arguments

        return SimpleNamespace(do=SimpleNamespace(remote=remote))

    def result(self, pending: object, asked: str) -> object:
        if isinstance(pending, Exception):
            raise pending
        return pending

    def log(self, text: str) -> None: ...


class TestLostProcesses:
    def test_one_that_is_lost_while_it_is_given_what_it_had_is_replaced_by_one_that_gets_it_once(self):
        placed = Placed(2, 1, 9)
        unit = PlacedUnit(placed, UNIT)
        for method in ("open", "update"):
            unit.ask(method, kept=method).answer()
        assert unit.ask("draw", 1).answer() == (1,)
        assert placed.done == [["open", "update"], ["open"], ["open", "update", "draw"]]

    def test_four_losses_end_it_also_while_it_is_given_what_it_had(self):
        unit = PlacedUnit(Placed(1, 0, 0, 0, 9), UNIT)
        unit.ask("open", kept="open").answer()
        with pytest.raises(EngineFailed, match="rollout 1 was lost 4 times"):
            unit.ask("draw").answer()


class TestMemory:
    @pytest.mark.parametrize("error", [MemoryError(), torch.OutOfMemoryError("CUDA out of memory. Tried to allocate")])
    def test_a_unit_without_enough_of_it_fails_as_training_would_and_names_its_role(self, error):
        process = RoleProcess()

        def draw() -> None:
            raise error

        process._unit = SimpleNamespace(draw=draw)
        placed = Placed()
        placed.start = lambda unit: SimpleNamespace(do=SimpleNamespace(remote=process.do))
        with pytest.raises(OutOfMemory, match="rollout 1: ran out of memory") as refused:
            PlacedUnit(placed, UNIT).ask("draw").answer()
        assert refused.value.code == "out_of_memory"
        assert refused.value.retryable

    def test_one_that_ray_has_killed_for_memory_says_so(self):
        placed = Placed(0)
        placed.result = lambda pending, asked: (_ for _ in ()).throw(Killed("node is low"))
        with pytest.raises(OutOfMemory, match="rollout 1 was killed for memory"):
            PlacedUnit(placed, UNIT).ask("draw").answer()

    def test_weights_count_as_they_are_sent_whatever_they_are_stored_in(self, tmp_path):
        save_file({"a": torch.zeros(3, 4, dtype=torch.bfloat16), "b": torch.zeros(5)}, tmp_path / "model.safetensors")
        assert shared_memory.parameters(tmp_path) == 17

    @pytest.mark.parametrize("short", ["shared", "memory"])
    def test_a_machine_without_room_for_them_is_refused_before_anything_starts(self, monkeypatch, short):
        room = {"shared": 1 << 40, "memory": 1 << 40, short: 100 << 20}
        monkeypatch.setattr(shared_memory.shutil, "disk_usage", lambda path: SimpleNamespace(free=room["shared"]))
        monkeypatch.setattr(shared_memory.psutil, "virtual_memory", lambda: SimpleNamespace(available=room["memory"]))
        monkeypatch.setattr(shared_memory, "_limit", lambda: float("inf"))
        with pytest.raises(OutOfMemory, match=r"node 1 needs 200 MB of (shared )?memory .* 100 MB"):
            shared_memory.check_room(200 << 20, 1)
        shared_memory.check_room(50 << 20, 1)


class TestNodes:
    @pytest.fixture
    def pair(self, monkeypatch):
        """pair() -> a cluster of nodes 0 and 1 with a unit each, and the list of those that are there."""
        monkeypatch.setattr(cluster, "_LOOK_SECONDS", 0)
        there = [0, 1]
        made = Cluster.__new__(Cluster)
        made._where = {UNIT: 0, Unit(role="reference", number=0): 1}
        made._came = set()
        made._node = SimpleNamespace(check=lambda: None)
        made.ray = SimpleNamespace(
            nodes=lambda: [{"Alive": node in there, "Resources": {f"node{node}": 1}} for node in (0, 1)],
            wait=lambda pending, timeout: ([], pending),
        )
        return made, there

    def test_one_that_is_gone_ends_whatever_waits_and_is_named(self, pair):
        made, there = pair
        made.check()
        there.remove(1)
        with pytest.raises(NodeMissing, match="node 1 of this worker is gone") as lost:
            made.result(object(), "reference 1: read")
        assert (lost.value.code, lost.value.retryable) == ("node_missing", True)

    def test_one_that_does_not_come_is_named(self, pair, monkeypatch):
        made, there = pair
        there.remove(1)
        monkeypatch.setattr(cluster, "MEET_SECONDS", 0.2)
        with pytest.raises(NodeMissing, match="node 1 of this worker did not come"):
            made._await_nodes()

    def test_an_answer_that_never_comes_ends_the_attempt(self, pair, monkeypatch):
        monkeypatch.setattr(cluster, "_ANSWER_SECONDS", 0.01)
        with pytest.raises(EngineFailed, match="rollout 1: draw took more than"):
            pair[0].result(object(), "rollout 1: draw")

    def test_the_end_of_this_nodes_ray_ends_whatever_waits(self, pair):
        def ended() -> None:
            raise EngineFailed("Ray ended with status 1")

        pair[0]._node.check = ended
        with pytest.raises(EngineFailed, match="status 1"):
            pair[0].result(object(), "rollout 1: draw")


class TestAddresses:
    def test_ray_gets_the_ip_of_a_rendezvous_that_is_given_by_name(self):
        address = ray_node.resolved("localhost:7001")
        assert address == "127.0.0.1:7001"
        roles = RoleNodes(nodes=[NodeShare(training=1)] * 2)
        assert "--node-ip-address=127.0.0.1" in ray_node.node_options(roles, address, Path("/tmp/x"), 1)

    def test_an_address_that_others_reach_goes_before_a_loopback_one(self, monkeypatch):
        addresses = [(0, 0, 0, "", (ip, 7001)) for ip in ("127.0.1.1", "10.0.0.5")]
        monkeypatch.setattr(ray_node.socket, "getaddrinfo", lambda *asked: addresses)
        assert ray_node.resolved("head:7001") == "10.0.0.5:7001"

    def test_a_name_without_an_address_is_an_error_of_its_own(self):
        with pytest.raises(NodeMissing, match=r"nowhere\.invalid has no IP address"):
            ray_node.resolved("nowhere.invalid:7001")


class TestFolders:
    @pytest.fixture(autouse=True)
    def folders(self, monkeypatch, tmp_path):
        monkeypatch.setattr(node_folder, "FOLDERS", tmp_path)
        return tmp_path

    def test_nodes_of_one_machine_share_one_that_goes_with_the_last(self, folders):
        one, two = NodeFolder("token"), NodeFolder("token")
        assert one.path == two.path
        one.close()
        assert two.path.is_dir()
        two.close()
        assert not list(folders.iterdir())

    def test_what_a_killed_process_left_goes_when_the_next_node_starts_whatever_pid_lives(self, folders):
        left = folders / f"{node_folder.PREFIX}{os.getpid()}"
        (left / "session").mkdir(parents=True)
        other = NodeFolder("other")
        assert not left.exists()
        NodeFolder("third").close()
        assert other.path.is_dir()
        other.close()

    def test_a_ray_that_cannot_be_started_leaves_nothing(self, folders, monkeypatch, tmp_path_factory):
        def refuse(*arguments: object, **options: object) -> None:
            raise OSError("no more processes")

        monkeypatch.setattr(ray_node.subprocess, "Popen", refuse)
        with pytest.raises(OSError, match="no more processes"):
            ray_node.RayNode(
                tmp_path_factory.mktemp("stage"),
                RoleNodes(nodes=[NodeShare(training=1)]),
                "127.0.0.1:7001",
                "token",
                store_bytes=1,
            )
        assert not list(folders.iterdir())

    def test_a_sweep_between_the_making_and_the_lock_is_noticed(self, folders, monkeypatch):
        lock, swept = fcntl.flock, []

        def late(descriptor: int, how: int) -> None:
            if not swept:
                swept.append(True)
                (folder,) = folders.iterdir()
                folder.rmdir()
            lock(descriptor, how)

        monkeypatch.setattr(node_folder.fcntl, "flock", late)
        made = NodeFolder("token")
        assert made.path.is_dir()
        monkeypatch.undo()
        os.close(made._lock)
