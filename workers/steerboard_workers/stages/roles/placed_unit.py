"""A unit as the first process that trains sees it: asked, and replaced when its process is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from steerboard_contracts.errors import OutOfMemory, SteerboardError
from steerboard_contracts.placement import Unit
from steerboard_contracts.stage.events import Failed
from steerboard_workers.engines.vllm.watchdog import EngineFailed

# A unit that dies this often would die again.
_MOST_LOSSES = 3


class Placing(Protocol):
    """What a unit needs of its cluster."""

    ray: Any

    def start(self, unit: Unit) -> Any: ...

    def result(self, pending: Any, asked: str) -> Any: ...

    def log(self, text: str) -> None: ...


class PlacedUnit:
    """One unit. What it is asked, it does in turn; when its process is lost, another one is started and asked again."""

    def __init__(self, cluster: Placing, unit: Unit) -> None:
        self._cluster = cluster
        self._unit = unit
        self._process = cluster.start(unit)
        self._losses = 0
        self._kept: dict[str, tuple[str, Sequence[Any]]] = {}

    def ask(self, method: str, *arguments: Any, kept: str = "") -> PendingCall:
        """`kept`: the name under which it is asked again of each process that takes the place of a lost one, until
        something else is asked under this name."""
        if kept:
            self._kept[kept] = (method, arguments)
        return PendingCall(self, method, arguments)

    def forget(self, kept: str) -> None:
        self._kept.pop(kept, None)

    def begin(self, method: str, arguments: Sequence[Any]) -> tuple[Any, Any]:
        """The process, and what it will answer."""
        return self._process, self._process.do.remote(method, *arguments)

    def answer(self, asked: PendingCall) -> Any:
        while True:
            try:
                return self._result(asked.method, asked.pending)
            except self._cluster.ray.exceptions.RayActorError as error:
                self._replace(asked.process, error)
                asked.begin()

    def _replace(self, lost: Any, error: Exception) -> None:
        """Replaces the process, unless that was done since `lost` was asked. A process that is lost before it has all
        that is kept counts, and the next one gets all of it."""
        if lost is not self._process:
            return
        while True:
            self._losses += 1
            if self._losses > _MOST_LOSSES:
                raise EngineFailed(
                    f"{self._unit.name} was lost {self._losses} times", hint="The run's log has its last output."
                ) from error
            self._cluster.log(f"{self._unit.name} was lost, and is being restarted")
            self._process = self._cluster.start(self._unit)
            try:
                for method, arguments in list(self._kept.values()):
                    self._result(method, self.begin(method, arguments)[1])
                return
            except self._cluster.ray.exceptions.RayActorError as again:
                error = again

    def _result(self, method: str, pending: Any) -> Any:
        """Raises Ray's `RayActorError` where the process is lost, and errors of ours for all others."""
        exceptions = self._cluster.ray.exceptions
        try:
            answer = self._cluster.result(pending, f"{self._unit.name}: {method}")
        except exceptions.RayActorError:
            raise
        except exceptions.OutOfMemoryError as error:
            raise OutOfMemory(f"{self._unit.name} was killed for memory: {error}"[:500]) from error
        except exceptions.RayError as error:
            raise EngineFailed(f"{self._unit.name}: {error}"[:500], hint="See the run's log.") from error
        if isinstance(answer, Failed):
            raise _error(self._unit, answer)
        return answer


class PendingCall:
    """A call that was begun."""

    def __init__(self, unit: PlacedUnit, method: str, arguments: Sequence[Any]) -> None:
        self._unit = unit
        self.method = method
        self._arguments = arguments
        self.begin()

    def begin(self) -> None:
        self.process, self.pending = self._unit.begin(self.method, self._arguments)

    def answer(self) -> Any:
        """Waits. Raises what the unit raised, `EngineFailed` and `NodeMissing`."""
        return self._unit.answer(self)


def _error(unit: Unit, failed: Failed) -> SteerboardError:
    """The unit's own, by the name of its role. What training makes of a lack of memory goes by the class."""
    kind = OutOfMemory if failed.code == OutOfMemory.code else EngineFailed
    extra = {"fix": failed.fix} if failed.fix is not None else {}
    detail = f"{unit.name}: {failed.detail}"
    error = kind(detail, code=failed.code, hint=failed.hint, errors=failed.errors, extra=extra)
    error.retryable = failed.retryable
    return error
