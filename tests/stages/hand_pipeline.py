"""Runs stages by hand, each in a process of its own, without database, broker or API."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steerboard_contracts.prompt_split import half_of, is_held_out, prompt_hash
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.run_config import RUN_CONFIG
from steerboard_contracts.stage.events import STAGE_EVENT, Failed, StageEvent, Succeeded
from steerboard_contracts.stage.inputs import DatasetInput, ModelInput, StageInput
from steerboard_contracts.stage.outputs import DatasetOutput, RewardsOutput
from steerboard_contracts.stage.spec import EngineProcess, Shard, StageSpec
from steerboard_contracts.turns import Message
from steerboard_workers.stages.__main__ import MODULES, failure_of
from steerboard_workers.stages.runtime import EventWriter, Stage
from support.patience import PATIENCE


@dataclass
class Result:
    """How a stage ended. `output` is its dataset or model as an input for the next stage."""

    last: Succeeded | Failed
    events: list[StageEvent]
    seconds: float
    directory: Path
    output: StageInput | None = None


@dataclass
class HandPipeline:
    """Keeps what the platform would keep: splits of datasets, and the outputs of stages by name.

    `here`: run stages in this process, which spares their start-up.
    """

    directory: Path
    salt: str = "salt"
    held_out: float = 0.1
    threads: int | None = 1
    here: bool = False
    llama_cpp: EngineProcess | None = None
    things: dict[str, StageInput] = field(default_factory=dict)

    def dataset(self, name: str, kind: str, rows: list[dict[str, Any]], normaliser: Normaliser | None = None) -> None:
        """Write a dataset as the platform exports it to stages."""
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / f"{name.lstrip('$')}.jsonl"
        with path.open("w") as file:
            for place, row in enumerate(rows):
                prompt = row["prompt"]
                if isinstance(prompt, str):
                    prompt = [{"role": "user", "content": prompt}]
                hash64 = prompt_hash([Message(**m) for m in prompt], self.salt)
                split = "held_out" if is_held_out(hash64, self.held_out) else "train"
                place_fields = {"row": place, "split": split, "half": half_of(hash64)}
                file.write(json.dumps({**row, "prompt": prompt, **place_fields}) + "\n")
        self.things[name] = DatasetInput(
            name=name, path=str(path), kind=kind, rows=len(rows), content_hash=name, normaliser=normaliser
        )

    def rows(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in Path(self.things[name].path).read_text().splitlines()]

    def prepare(
        self, name: str, config: Mapping[str, Any], inputs: Mapping[str, str], shard: Shard | None = None
    ) -> Path:
        """Write stage.json; the stage's directory."""
        folder = self.directory / name
        folder.mkdir(parents=True, exist_ok=True)
        spec = StageSpec(
            run_id=name,
            name=name,
            config=RUN_CONFIG.validate_python(dict(config)),
            inputs={key: self.things[thing] for key, thing in inputs.items()},
            shard=shard or Shard(),
            threads=self.threads,
            llama_cpp=self.llama_cpp,
        )
        (folder / "stage.json").write_text(spec.model_dump_json())
        return folder

    def run(
        self, name: str, config: Mapping[str, Any], inputs: Mapping[str, str], shard: Shard | None = None
    ) -> Result:
        """Run a stage to its end and keep its output under `name`."""
        result = self.run_folder(self.prepare(name, config, inputs, shard))
        if isinstance(result.last, Succeeded):
            self._keep(name, result, inputs)
        return result

    def run_folder(self, folder: Path) -> Result:
        """Run a prepared stage to its end."""
        started = time.monotonic()
        lines = run_here(folder) if self.here else run_apart(folder)
        seconds = time.monotonic() - started
        events = [STAGE_EVENT.validate_json(line) for line in lines]
        last = events[-1]
        assert isinstance(last, Succeeded | Failed)
        return Result(last, events, seconds, folder)

    def _keep(self, name: str, result: Result, inputs: Mapping[str, str]) -> None:
        assert isinstance(result.last, Succeeded)
        output = result.last.outputs[0]
        path = result.directory / output.path
        if output.type == "model":
            self.things[name] = ModelInput(name=name, path=str(path), content_hash=name)
        elif isinstance(output, DatasetOutput):
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            self.dataset(name, output.kind, [{k: v for k, v in row.items() if k != "row"} for row in rows])
        elif isinstance(output, RewardsOutput):
            values = [json.loads(line)["value"] for line in path.read_text().splitlines()]
            rows = [{**row, "reward": v} for row, v in zip(self.rows(inputs["data"]), values, strict=True)]
            self.dataset(
                name, "labelled", rows, Normaliser.fit(values, inputs.get("reward", name), inputs.get("reward"))
            )
        result.output = self.things.get(name)


def run_apart(folder: Path) -> list[str]:
    """A stage's events, from a process of its own."""
    command = [sys.executable, "-m", "steerboard_workers.stages", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout, done.stderr
    return done.stdout.splitlines()


def run_here(folder: Path) -> list[str]:
    """A stage's events, from this process."""
    path = folder / "events.jsonl"
    with path.open("wb") as file:
        events = EventWriter(file.fileno())
        try:
            stage = Stage.open(folder, events)
            result = importlib.import_module(MODULES[stage.spec.config.run]).run(stage)
            stage.spent()
            events.write(result)
        except Exception as error:
            traceback.print_exc()
            events.write(failure_of(error))
    return path.read_text().splitlines()


def killed_when(there: Callable[[], bool], folder: Path) -> None:
    """A prepared stage, in a fork of this process, killed with -9 once it is `there`."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            run_here(folder)
            status = 0
        finally:
            os._exit(status)
    deadline = time.monotonic() + PATIENCE
    while not there():
        assert os.waitpid(pid, os.WNOHANG) == (0, 0), "it ended before"
        assert time.monotonic() < deadline
    os.kill(pid, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
