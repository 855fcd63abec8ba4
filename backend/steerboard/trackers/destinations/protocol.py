"""What an exporter hands to a tracker, and what it hears back. Nothing in this folder sees the database."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True)
class ExportedRun:
    """A run as trackers show it. `label` distinguishes it among the runs of a project, and is safe as a folder's name.
    `created_ms`: milliseconds since 1970. `url` of its page; `attempt` counts how often it has begun."""

    id: str
    label: str
    project: str
    kind: str
    method: str | None
    url: str
    attempt: int
    created_ms: int
    settings: dict[str, Any]

    def flat_settings(self) -> dict[str, str]:
        """Each under the path to it, such as `lora.rank`."""
        return dict(_flat("", self.settings))


@dataclass(frozen=True)
class Ending:
    """How a run has ended: `succeeded`, `failed`, `cancelled`, ... `outputs`: addresses by name."""

    state: str
    reason: str
    ended_ms: int
    summary: dict[str, Any]
    outputs: dict[str, str]


@dataclass(frozen=True)
class Batch:
    """Metrics of one run by step, in rising order, which the tracker has not confirmed. `after`: the last step that it
    has been given. `remote`: the tracker's own name of the run; None before the first batch."""

    run: ExportedRun
    after: int | None
    points: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    end: Ending | None = None
    remote: str | None = None

    def json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Batch:
        end = value["end"]
        return cls(
            run=ExportedRun(**value["run"]),
            after=value["after"],
            points=[(step, values) for step, values in value["points"]],
            end=Ending(**end) if end is not None else None,
            remote=value["remote"],
        )

    def last(self) -> int | None:
        return self.points[-1][0] if self.points else self.after


@dataclass(frozen=True)
class Written:
    """`link`: where a browser finds the run; or `folder`, where files are. `confirmed`: the step up to which nothing is
    lost any more, even if the process is killed."""

    remote: str | None
    link: str | None
    folder: str | None
    confirmed: int | None


@dataclass(frozen=True)
class Place:
    """The place where a tracker writes. `folder` is its own; `allowed` are private addresses (`AllowList`)."""

    settings: dict[str, Any]
    secret: str | None
    folder: Path
    allowed: str
    project: str


class NotExported(Exception):
    """The tracker did not take it. The text is for people, and never holds a secret."""


class Destination(Protocol):
    """One tracker. Batches of a run come in order; one that was not confirmed may come again."""

    def write(self, batch: Batch) -> Written:
        """Raises `NotExported`, or whatever its library raises."""
        ...

    def close(self) -> dict[str, int | None]:
        """Ends what is open; the confirmed steps by run."""
        ...


def finite(values: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if math.isfinite(value)}


def _flat(path: str, value: Any) -> list[tuple[str, str]]:
    if isinstance(value, dict) and value:
        return [pair for name, inner in value.items() for pair in _flat(f"{path}.{name}" if path else name, inner)]
    return [(path, "" if value is None else str(value))] if path else []
