"""Runs: started, followed, steered, and what they have measured and made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steerboard_client import frames
from steerboard_client._sync.connection import Connection
from steerboard_client._sync.datasets import Dataset
from steerboard_client._sync.datasets import find as find_dataset
from steerboard_client._sync.models import Model
from steerboard_client._sync.models import find as find_model
from steerboard_client._sync.waiting import until_ended
from steerboard_client.errors import BadInput, RunFailed
from steerboard_client.schemas import LogLine, MetricSeries, RunDetail, RunProbes
from steerboard_client.wire import path_of


class Run:
    """One run. `info` is as of the last call; `refresh` renews it."""

    def __init__(self, connection: Connection, info: RunDetail) -> None:
        self._connection = connection
        self.info = info

    @property
    def id(self) -> str:
        return str(self.info.id)

    @property
    def name(self) -> str:
        return f"{self.info.pipeline.name}.{self.info.name}" if self.info.pipeline else self.info.name

    @property
    def state(self) -> str:
        return self.info.state

    @property
    def url(self) -> str:
        """Its page in the dashboard."""
        return f"{self._connection.url}/p/{self._connection.project}/runs/{self.id}"

    def __repr__(self) -> str:
        return f"<Run {self.name}: {self.state}>"

    def refresh(self) -> Run:
        self.info = self._connection.load(RunDetail, path_of("runs", self.id))
        return self

    def renewed_runs(self) -> Sequence[RunDetail]:
        self.refresh()
        return [self.info]

    def wait(
        self, *, timeout: float | None = None, progress: bool = True, log: bool = False, check: bool = True
    ) -> Run:
        """Waits until it has ended, showing its log if `log` is true. Raises `RunFailed` (with the run's own code)
        where it did not succeed, unless `check` is false, and `WaitTimeout` after `timeout` seconds."""
        until_ended(self, self._connection, timeout, progress, log)
        if check and self.state != "succeeded":
            raise RunFailed(
                f"{self.name} {self.state}: {self.info.reason}".rstrip(": "),
                code=self.info.reason_code,
                hint=str((self.info.error or {}).get("hint") or f"See {self.url}"),
            )
        return self

    def cancel(self) -> Run:
        return self._act("cancel")

    def pause(self) -> Run:
        return self._act("pause")

    def resume(self) -> Run:
        return self._act("resume")

    def _act(self, what: str) -> Run:
        self._connection.post(f"{path_of('runs', self.id)}/{what}")
        return self.refresh()

    def series(self, *names: str, points: int = 500) -> list[MetricSeries]:
        """The curves, at most `points` of each, as they are drawn."""
        curves = self._connection.get(f"{path_of('runs', self.id)}/metrics", name=list(names), points=points)
        return [MetricSeries.model_validate(curve) for curve in curves]

    def metrics(self, *names: str, points: int = 500) -> Any:
        """A pandas frame with a column for each metric, by step; at most `points` steps of each."""
        columns: dict[int, dict[str, Any]] = {}
        for series in self.series(*names, points=points):
            for point in series.points:
                columns.setdefault(point.step, {"step": point.step})[series.name] = point.value
        return frames.to_pandas(columns[step] for step in sorted(columns)).set_index("step")

    def samples(self) -> RunProbes:
        """Answers to the probe prompts at every evaluation so far."""
        return self._connection.load(RunProbes, f"{path_of('runs', self.id)}/probes")

    def logs(self, *, limit: int = 500) -> list[LogLine]:
        """The last lines of its log, the oldest first."""
        page = self._connection.get(f"{path_of('runs', self.id)}/logs", limit=limit, newest_first=True)
        return [LogLine.model_validate(line) for line in reversed(page["items"])]

    def model(self, output: str | None = None) -> Model:
        """The model that it made. Raises `BadInput` (`no_such_output`)."""
        return find_model(self._connection, self._made("model", output))

    def dataset(self, output: str | None = None) -> Dataset:
        """The dataset that it made. Raises `BadInput` (`no_such_output`)."""
        return find_dataset(self._connection, self._made("dataset", output))

    def _made(self, type_: str, output: str | None) -> str:
        made = {row.name: row for row in self.info.outputs if row.type == type_}
        wanted = [row for name, row in made.items() if output in (None, name)]
        if not wanted:
            names = ", ".join(made) or "nothing"
            named = "" if output is None else f" named {output!r}"
            raise BadInput(f"{self.name} made no {type_}{named}; it made {names}.", code="no_such_output")
        return str(wanted[0].id)


def find(connection: Connection, ref: str) -> Run:
    return Run(connection, connection.load(RunDetail, path_of("runs", ref)))


def push(connection: Connection, kind: str, thing: str | Model | Dataset, repo: str, body: dict[str, Any]) -> Run:
    """`kind`: `models` or `datasets`."""
    ref = thing if isinstance(thing, str) else thing.id
    made = connection.post(path_of(kind, ref, "push"), {"repo": repo, **body})
    return Run(connection, RunDetail.model_validate(made))


def start(connection: Connection, kind: str, name: str | None, reuse: bool, pool: str, settings: dict[str, Any]) -> Run:
    """`kind`: a run kind, or the name of a training method. What names an input's slot is an input, all else is the
    config's. Raises `BadInput` (`unknown_kind`)."""
    cards = connection.get("schemas")
    card = next((card for card in cards if card["key"] == kind), None)
    if card is None:
        keys = ", ".join(card["key"] for card in cards)
        raise BadInput(f"there is no run of kind {kind!r}; there are {keys}.", code="unknown_kind")
    inputs: dict[str, str] = {}
    config = {"run": card["kind"], **({"method": card["method"]} if card["method"] else {})}
    slots = {slot["name"]: slot for slot in card["inputs"]}
    for key, value in settings.items():
        items = list(value) if isinstance(value, (list, tuple)) else [value]
        if key not in slots or any(isinstance(item, dict) for item in items):
            config[key] = value
        elif slots[key]["many"]:
            inputs |= {f"{key}.{place}": reference(item) for place, item in enumerate(items)}
        else:
            inputs[key] = reference(value)
    body = {"config": config, "inputs": inputs, "name": name, "reuse": reuse, "pool": pool}
    made = connection.post("runs", body)
    return Run(connection, RunDetail.model_validate(made))


def reference(value: Any) -> str:
    """What names an input: a handle's id, or what was given."""
    return value.id if isinstance(value, (Dataset, Model)) else str(value)
