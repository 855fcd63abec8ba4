"""The units of one attempt as the first process that trains sees them: placed by Ray, asked, replaced when lost."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Sequence
from typing import Any

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.placement import TOKEN_VARIABLE, Role, RoleNodes, Unit
from steerboard_contracts.stage import Failed
from steerboard_workers.engines.watchdog import EngineFailed
from steerboard_workers.stages.roles.processes import RoleProcess
from steerboard_workers.stages.roles.ray_node import MEET_SECONDS, RayNode, node_resource, variables
from steerboard_workers.stages.runtime import Stage

# A unit that dies this often would die again.
_MOST_LOSSES = 3
_HERE = "127.0.0.1"


class Cluster:
    """Ray, with this process as its only client. It ends with this process, or with `close`."""

    def __init__(self, stage: Stage, roles: RoleNodes) -> None:
        """Raises `EngineMissing`, and `EngineFailed` where nodes do not come."""
        token = os.environ.get(TOKEN_VARIABLE) or secrets.token_hex(32)
        address = roles.address or f"{_HERE}:{_free_port()}"
        self._stage = stage
        self._nodes = roles.nodes
        self._where = {unit: node for node, share in enumerate(roles.nodes) for unit in share.units}
        self._takes_devices = roles.takes_devices
        os.environ.update(variables(token))
        self._node = RayNode(stage.directory, roles, address, token, store_bytes=store_bytes(stage))
        import ray

        self.ray: Any = ray
        try:
            self._connect(address)
            self._await_nodes()
        except BaseException:
            self._node.close()
            raise

    def units(self, role: Role) -> list[PlacedUnit]:
        """Those of `role`, in order. Their processes start at the same time."""
        return [PlacedUnit(self, unit) for unit in sorted(self._where, key=lambda one: one.number) if unit.role == role]

    def start(self, unit: Unit) -> Any:
        """A process for it, where it belongs. Raises `EngineFailed` where that node is gone."""
        here = node_resource(self._where[unit])
        if here not in self.ray.cluster_resources():
            raise EngineFailed(f"{unit.name} has no place: node {self._where[unit]} of this worker is gone")
        placed = self.ray.remote(RoleProcess).options(
            num_cpus=0, num_gpus=unit.devices if self._takes_devices else 0, resources={here: 1}, max_restarts=0
        )
        return placed.remote()

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
        wanted = {node_resource(number) for number, share in enumerate(self._nodes) if share.units}
        deadline = time.monotonic() + MEET_SECONDS
        while missing := wanted - self.ray.cluster_resources().keys():
            if time.monotonic() > deadline:
                raise EngineFailed(
                    f"{', '.join(sorted(missing))} of this worker did not come within {MEET_SECONDS:g} s",
                    hint="Look at the logs of its other nodes, and open the port after the rendezvous between them.",
                )
            time.sleep(0.1)


class PlacedUnit:
    """One unit. What it is asked, it does in turn; when its process is lost, another one is started and asked again."""

    def __init__(self, cluster: Cluster, unit: Unit) -> None:
        self._cluster = cluster
        self._unit = unit
        self._process = cluster.start(unit)
        self._losses = 0
        self._kept: dict[str, tuple[str, Sequence[Any]]] = {}

    def ask(self, method: str, *arguments: Any, kept: str = "") -> Asked:
        """`kept`: the name under which it is asked again of each process that takes the place of a lost one, until
        something else is asked under this name."""
        if kept:
            self._kept[kept] = (method, arguments)
        return Asked(self, method, arguments)

    def forget(self, kept: str) -> None:
        self._kept.pop(kept, None)

    def begin(self, method: str, arguments: Sequence[Any]) -> tuple[Any, Any]:
        """The process, and what it will answer."""
        return self._process, self._process.do.remote(method, *arguments)

    def replace(self, lost: Any, error: Exception) -> None:
        """Unless that was done since `lost` was asked."""
        if lost is not self._process:
            return
        self._losses += 1
        if self._losses > _MOST_LOSSES:
            raise EngineFailed(
                f"{self._unit.name} was lost {self._losses} times", hint="The run's log has its last output."
            ) from error
        self._cluster.log(f"{self._unit.name} was lost, and is started again")
        self._process = self._cluster.start(self._unit)
        for method, arguments in list(self._kept.values()):
            Asked(self, method, arguments).answer()

    def answer(self, asked: Asked) -> Any:
        ray = self._cluster.ray
        while True:
            try:
                found = ray.get(asked.pending)
            except ray.exceptions.RayActorError as error:
                self.replace(asked.process, error)
                asked.begin()
                continue
            except ray.exceptions.RayError as error:
                raise EngineFailed(f"{self._unit.name}: {error}"[:500], hint="The run's log has more.") from error
            if isinstance(found, Failed):
                raise _error(found)
            return found


class Asked:
    """A call that was begun."""

    def __init__(self, unit: PlacedUnit, method: str, arguments: Sequence[Any]) -> None:
        self._unit = unit
        self._method = method
        self._arguments = arguments
        self.begin()

    def begin(self) -> None:
        self.process, self.pending = self._unit.begin(self._method, self._arguments)

    def answer(self) -> Any:
        """Waits. Raises what the unit raised, and `EngineFailed`."""
        return self._unit.answer(self)


def store_bytes(stage: Stage) -> int:
    """For the weights of the model in training, in float32, and for examples."""
    stored = sum(path.stat().st_size for path in stage.model_path("model").rglob("*.safetensors"))
    return (256 << 20) + 4 * stored


def _error(failed: Failed) -> SteerboardError:
    found = EngineFailed(
        failed.detail, code=failed.code, hint=failed.hint, errors=failed.errors, extra={"fix": failed.fix}
    )
    found.retryable = failed.retryable
    return found


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((_HERE, 0))
        port: int = free.getsockname()[1]
    return port
