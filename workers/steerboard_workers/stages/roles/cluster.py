"""The cluster of one attempt as the first process that trains sees it: its nodes, and waiting for their answers."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable
from typing import Any

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.placement import MEET_SECONDS, TOKEN_VARIABLE, Role, RoleNodes, Unit
from steerboard_workers.engines.vllm.watchdog import EngineFailed
from steerboard_workers.stages.roles.node_missing import NodeMissing
from steerboard_workers.stages.roles.placed_unit import PlacedUnit
from steerboard_workers.stages.roles.processes import RoleProcess
from steerboard_workers.stages.roles.ray_node import RayNode, node_resource, resolved, variables
from steerboard_workers.stages.roles.shared_memory import store_bytes
from steerboard_workers.stages.runtime import Stage

# Between two looks at the nodes while something is waited for.
_LOOK_SECONDS = 1.0
# Above what any call takes; a stage that is silent for twice as long is ended by its worker.
_ANSWER_SECONDS = 3600
_HERE = "127.0.0.1"


class Cluster:
    """Ray, with this process as its only client. It ends with this process, or with `close`."""

    def __init__(self, stage: Stage, roles: RoleNodes) -> None:
        """Raises `EngineMissing`, `OutOfMemory`, and `NodeMissing` where nodes do not come."""
        token = os.environ.get(TOKEN_VARIABLE) or secrets.token_hex(32)
        address = resolved(roles.address or f"{_HERE}:{_free_port()}")
        self._stage = stage
        self._where = {unit: node for node, share in enumerate(roles.nodes) for unit in share.units}
        self._came: set[int] = set()
        self._takes_devices = roles.takes_devices
        os.environ.update(variables(token))
        self._node = RayNode(stage.directory, roles, address, token, store_bytes=store_bytes(stage, roles))
        import ray

        self.ray: Any = ray
        try:
            self._connect(address)
            self._await_nodes()
        except BaseException:
            self.close()
            raise

    def units(self, role: Role) -> list[PlacedUnit]:
        """The units of `role`, in order. Their processes start at the same time."""
        return [
            PlacedUnit(self, unit) for unit in sorted(self._where, key=lambda unit: unit.number) if unit.role == role
        ]

    def start(self, unit: Unit) -> Any:
        """A process for it, where it belongs. Raises `NodeMissing` where that node is gone."""
        self.check()
        placed = self.ray.remote(RoleProcess).options(
            num_cpus=0,
            num_gpus=unit.devices if self._takes_devices else 0,
            resources={node_resource(self._where[unit]): 1},
            max_restarts=0,
        )
        return placed.remote()

    def result(self, pending: Any, asked: str) -> Any:
        """What `pending` becomes. Raises what Ray does, `NodeMissing`, and `EngineFailed` after a long time."""

        def ready() -> bool:
            done, _ = self.ray.wait([pending], timeout=_LOOK_SECONDS)
            return bool(done)

        self._await(ready, _ANSWER_SECONDS, lambda: EngineFailed(f"{asked} took more than {_ANSWER_SECONDS:,} s"))
        return self.ray.get(pending)

    def check(self) -> None:
        """Raises `EngineFailed` where this node's Ray has ended, `NodeMissing` where another node is gone."""
        self._node.check()
        alive: set[str] = set()
        alive.update(*(node["Resources"] for node in self.ray.nodes() if node["Alive"]))
        there = {node for node in self._where.values() if node_resource(node) in alive}
        if lost := sorted(self._came - there):
            raise NodeMissing(f"{_named(lost)} of this worker is gone", hint="The next attempt waits until it is back.")
        self._came |= there

    def log(self, text: str) -> None:
        self._stage.log(text, "warning")

    def close(self) -> None:
        self.ray.shutdown()
        self._node.close()

    def _connect(self, address: str) -> None:
        deadline = time.monotonic() + MEET_SECONDS
        while True:
            self._node.check()
            try:
                self.ray.init(address=address, _node_ip_address=address.rpartition(":")[0], logging_level="error")
                return
            except (ConnectionError, RuntimeError) as error:
                if time.monotonic() > deadline:
                    raise EngineFailed(f"Ray at {address} does not answer: {error}") from error
                time.sleep(0.2)

    def _await_nodes(self) -> None:
        def ready() -> bool:
            time.sleep(0.1)
            return self._came >= set(self._where.values())

        def late() -> NodeMissing:
            return NodeMissing(
                f"{_named(sorted(set(self._where.values()) - self._came))} of this worker did not come within "
                f"{MEET_SECONDS} s",
                hint="Look at the logs of its other nodes, and open the port after the rendezvous between them.",
            )

        self._await(ready, MEET_SECONDS, late)

    def _await(self, ready: Callable[[], bool], seconds: float, late: Callable[[], SteerboardError]) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                raise late()


def _named(nodes: list[int]) -> str:
    return f"node {', '.join(map(str, nodes))}"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((_HERE, 0))
        port: int = free.getsockname()[1]
    return port
