"""Pipelines: a recipe from data to report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steerboard_client._sync.connection import Connection
from steerboard_client._sync.models import Model
from steerboard_client._sync.models import find as find_model
from steerboard_client._sync.runs import Run, reference
from steerboard_client._sync.runs import find as find_run
from steerboard_client._sync.waiting import until_ended
from steerboard_client.errors import BadInput, RunFailed
from steerboard_client.schemas import GateVerdict, PipelineDetail, PipelineReport, RunSummary
from steerboard_client.wire import path_of


class Pipeline:
    """One execution of a recipe. `info` is as of the last call; `refresh` renews it."""

    def __init__(self, connection: Connection, info: PipelineDetail) -> None:
        self._connection = connection
        self.info = info

    @property
    def id(self) -> str:
        return str(self.info.id)

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def state(self) -> str:
        return self.info.state

    @property
    def url(self) -> str:
        """Its page in the dashboard."""
        return f"{self._connection.url}/p/{self._connection.project}/pipelines/{self.name}"

    def __repr__(self) -> str:
        return f"<Pipeline {self.name}: {self.state}>"

    def refresh(self) -> Pipeline:
        self.info = self._connection.load(PipelineDetail, path_of("pipelines", self.id))
        return self

    def renewed_runs(self) -> Sequence[RunSummary]:
        """The stages, as they are now."""
        self.refresh()
        return self.info.runs

    def wait(
        self, *, timeout: float | None = None, progress: bool = True, log: bool = False, check: bool = True
    ) -> Pipeline:
        """Waits until every stage has ended, with the stages' logs if `log` is true. Raises `RunFailed` (with the
        failed stage's code) unless `check` is false, and `WaitTimeout` after `timeout` seconds."""
        until_ended(self, self._connection, timeout, progress, log)
        self.refresh()
        if check and self.state != "succeeded":
            broken = next((run for run in self.info.runs if run.state == "failed"), None)
            why = f": {broken.name}: {broken.reason}" if broken else ""
            raise RunFailed(
                f"{self.name} {self.state}{why}", code=broken.reason_code if broken else None, hint=f"See {self.url}"
            )
        return self

    def cancel(self) -> Pipeline:
        self._connection.post(f"{path_of('pipelines', self.id)}/cancel")
        return self.refresh()

    def resume(self) -> Pipeline:
        self._connection.post(f"{path_of('pipelines', self.id)}/resume")
        return self.refresh()

    def run(self, stage: str) -> Run:
        """The run of a stage. Raises `BadInput` (`no_such_stage`)."""
        named = {run.name: run for run in self.info.runs}
        if stage not in named:
            raise BadInput(f"{self.name} has no stage {stage!r}; it has {', '.join(named)}.", code="no_such_stage")
        return find_run(self._connection, str(named[stage].id))

    def model(self, stage: str) -> Model:
        """The model that a stage made."""
        return find_model(self._connection, f"{self.name}.{stage}")

    def report(self, stage: str | None = None) -> PipelineReport:
        return self._connection.load(PipelineReport, f"{path_of('pipelines', self.id)}/report", stage=stage)

    def gate(self, rules: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> GateVerdict:
        """Holds rules against its evaluation: `[{"metric": "win_rate", "entrant": ..., "op": ">", "value": 0.5}]`."""
        verdict = self._connection.post(f"{path_of('pipelines', self.id)}/gate", gate_body(rules))
        return GateVerdict.model_validate(verdict)


def gate_body(rules: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return dict(rules) if isinstance(rules, Mapping) else {"rules": [dict(rule) for rule in rules]}


def find(connection: Connection, ref: str) -> Pipeline:
    return Pipeline(connection, connection.load(PipelineDetail, path_of("pipelines", ref)))


def launch(
    connection: Connection, recipe: str | Path, reuse: bool, from_stage: str | None, settings: Mapping[str, Any]
) -> Pipeline:
    """`recipe`: the name of a shipped one, the path of a file, or its YAML. A setting `stage__field` is that of a
    stage."""
    text = _text_of(recipe)
    named = {"text": text} if text is not None else {"recipe": str(recipe)}
    overrides = [f"{name.replace('__', '.')}={_written(value)}" for name, value in settings.items()]
    body = {**named, "set": overrides, "reuse": reuse, "from_stage": from_stage}
    return Pipeline(connection, PipelineDetail.model_validate(connection.post("pipelines", body)))


def _text_of(recipe: str | Path) -> str | None:
    if isinstance(recipe, Path) or recipe.endswith((".yaml", ".yml")):
        try:
            return Path(recipe).read_text(encoding="utf-8")
        except OSError as error:
            raise BadInput(f"cannot read {recipe}: {error.strerror}", code="no_such_file") from None
    return recipe if "\n" in recipe else None


def _written(value: Any) -> str:
    """The value as a `--set` of the command line has it: YAML, of which JSON is a part."""
    return json.dumps(value) if isinstance(value, (bool, int, float, list, dict)) or value is None else reference(value)
