"""A platform to break: real servers, real worker processes, one tiny model, and ways to hurt each of them."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.imports.loading import import_file
from steerboard.datasets.service import export_for_stage
from steerboard.datasets.tables import Dataset
from steerboard.platform.database import transaction
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.service import register_model
from steerboard.registry.tables import Model
from steerboard.runs import queries
from steerboard.runs.state import lifecycle
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.tables import Metric, Run, RunLog, RunOutput
from steerboard_contracts.run_config import RUN_CONFIG
from steerboard_contracts.stage.spec import StageSpec
from support.patience import PATIENCE, wait_until
from support.processes.surroundings import surroundings

ROWS = 120
ENDED = ("succeeded", "failed", "cancelled")
# What a clock measures differs from run to run.
CLOCKED = frozenset({"tokens_per_second", "device_seconds", "wall_seconds"})
BASE = {
    "run": "base",
    "source": "random:tiny-llama",
    "vocabulary": 400,
    "hidden": 32,
    "layers": 1,
    "heads": 2,
    "max_length": 64,
}
SFT = {"run": "train", "method": "sft", "lr": 1e-3, "batch": 4, "epochs": 3, "checkpoint_every": 4, "precision": "fp32"}


@dataclass
class Worker:
    """A worker process. Its guardians die with it, so killing it leaves nothing."""

    process: subprocess.Popen[bytes]
    log: Path

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self) -> None:
        """Kill at once, whatever state it is in."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait(timeout=PATIENCE)


@dataclass
class Result:
    """What must be equal in a disturbed and an undisturbed run: weights by hash, and every metric of every step."""

    weights: str
    metrics: dict[tuple[str, int], float]

    @property
    def losses(self) -> dict[int, float]:
        """The loss of each step."""
        return {step: value for (name, step), value in self.metrics.items() if name == "loss"}


@dataclass
class Shared:
    """Made once for all tests: base models, and what undisturbed runs gave, by config."""

    folder: Path
    results: dict[str, Result] = field(default_factory=dict)

    @property
    def base(self) -> Path:
        """The files of the base model."""
        return self.folder / "base" / "outputs" / "model"


@dataclass
class Stack:
    sessions: sessionmaker[Session]
    project_id: uuid.UUID
    environment: dict[str, str]
    home: Path
    shared: Shared
    workers: list[Worker] = field(default_factory=list)
    base_id: uuid.UUID | None = None
    data_id: uuid.UUID | None = None

    # -- the work ---------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Import the tiny data (enough for some 80 optimiser steps) and register the tiny base model."""
        path = self.home / "rows.jsonl"
        words = ["red", "green", "blue", "apple", "pear", "house", "tree", "river"]
        with path.open("w") as file:
            for number in range(ROWS):
                word, other = words[number % 8], words[number // 8 % 8]
                sample = {"prompt": f"Say {word} {number}?", "response": f"You said {word}, so here is {other}."}
                file.write(json.dumps(sample) + "\n")
        with transaction(self.sessions) as session:
            project = session.get_one(Project, self.project_id)
            # The same split in every test, so that their results can be compared.
            project.split_salt = "salt"
            report = import_file(session, project, path=path, name="tiny", kind="instructions")
            self.data_id = report.dataset.id
        self.base_id = self.register_base("base", BASE)

    def register_base(self, name: str, config: dict[str, Any]) -> uuid.UUID:
        """A base model, made once for all tests."""
        with transaction(self.sessions) as session:
            return register_model(
                session,
                ArtifactStore(self.environment["STEERBOARD_ARTIFACT_URL"]),
                session.get_one(Project, self.project_id),
                name=name,
                folder=self._base_folder(session, self.shared.folder / name, config),
                role="base",
                method=None,
                parent_id=None,
                run_id=None,
            ).id

    def _base_folder(self, session: Session, folder: Path, config: dict[str, Any]) -> Path:
        """Makes the model by the base stage in this process, which has imported torch."""
        from steerboard_workers.stages import base
        from steerboard_workers.stages.runtime import EventWriter, Stage

        model = folder / "outputs" / "model"
        if not model.is_dir():
            folder.mkdir()
            data = export_for_stage(session, session.get_one(Dataset, self.data_id), folder / "rows.jsonl")
            spec = StageSpec(
                run_id="base", name="base", config=RUN_CONFIG.validate_python(config), inputs={"data.0": data}
            )
            with open(os.devnull, "wb") as nobody:
                base.run(Stage(folder, spec, EventWriter(nobody.fileno())))
        return model

    def undisturbed(self, config: dict[str, Any]) -> Result:
        """What a run of `config` gives when nothing happens to it."""
        key = json.dumps(config, sort_keys=True)
        if key not in self.shared.results:
            worker = self.start_worker("undisturbed")
            (run,) = self.finish(self.create("undisturbed", config))
            assert (run.state, run.attempt) == ("succeeded", 1), run.reason
            # Starting cold takes most of the time of these tests.
            assert "without the stage parent" not in worker.log.read_text()
            self.shared.results[key] = self.result(run.id)
            worker.stop()
        return self.shared.results[key]

    def create(self, name: str, config: dict[str, Any], **options: Any) -> uuid.UUID:
        """A training run on the tiny data and the tiny base model."""
        inputs = {"data": InputRef(dataset=self.data_id), "model": InputRef(model=self.base_id)}
        return self._create(name, config, inputs, **options)

    def create_mix(self, name: str) -> uuid.UUID:
        """A run whose stage needs no torch, and so little of anything."""
        config = {"run": "mix", "parts": [{}], "size": 10}
        return self._create(name, config, {"parts.0": InputRef(dataset=self.data_id)})

    def create_generate(self, name: str, config: dict[str, Any], **options: Any) -> uuid.UUID:
        """A run in which the base model answers the prompts of `config`."""
        return self._create(name, config, {"model": InputRef(model=self.base_id)}, **options)

    def _create(self, name: str, config: dict[str, Any], inputs: dict[str, InputRef], **options: Any) -> uuid.UUID:
        with transaction(self.sessions) as session:
            return lifecycle.create_run(
                session,
                session.get_one(Project, self.project_id),
                name=name,
                config=RUN_CONFIG.validate_python(config),
                inputs=inputs,
                created_by="tester",
                **{"reuse": False, **options},
            ).id

    def run(self, run_id: uuid.UUID) -> Run:
        with transaction(self.sessions) as session:
            return session.get_one(Run, run_id)

    def cancel(self, run_id: uuid.UUID, actor: str) -> None:
        with transaction(self.sessions) as session:
            lifecycle.request_cancel(session, session.get_one(Run, run_id), actor)

    def resume(self, run_id: uuid.UUID, actor: str) -> None:
        with transaction(self.sessions) as session:
            lifecycle.resume(session, session.get_one(Run, run_id), actor)

    def log_lines(self, run_id: uuid.UUID) -> list[str]:
        with transaction(self.sessions) as session:
            return list(session.scalars(select(RunLog.message).where(RunLog.run_id == run_id).order_by(RunLog.id)))

    def finish(self, *run_ids: uuid.UUID, seconds: float = PATIENCE) -> list[Run]:
        """Wait until all these runs have ended."""
        self.wait(lambda: all(self.run(run_id).state in ENDED for run_id in run_ids), seconds, "runs did not end")
        return [self.run(run_id) for run_id in run_ids]

    def result(self, run_id: uuid.UUID) -> Result:
        with transaction(self.sessions) as session:
            weights = session.scalar(
                select(Model.artifact_hash)
                .join(RunOutput, RunOutput.model_id == Model.id)
                .where(RunOutput.run_id == run_id)
            )
            rows = session.execute(
                select(Metric.name, Metric.step, Metric.value).where(
                    Metric.run_id == run_id, Metric.name.not_in(CLOCKED), Metric.name.not_like("device/%")
                )
            )
            return Result(str(weights), {(name, step): value for name, step, value in rows})

    def timeline(self, run_id: uuid.UUID) -> list[str]:
        """The states it came to, as its page shows them."""
        with transaction(self.sessions) as session:
            return [moved.to_state for moved in queries.detail(session, session.get_one(Run, run_id)).timeline]

    # -- the processes ----------------------------------------------------------------------------------------------

    def start_worker(
        self,
        name: str,
        *,
        devices: str = "",
        file_limit: int | None = None,
        options: Sequence[str] = (),
        **environment: str,
    ) -> Worker:
        """`file_limit` in bytes stands for a full disk: no file may grow beyond it."""

        def limit() -> None:
            if file_limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

        log = self.home / f"{name}.log"
        with log.open("ab") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "steerboard_workers.worker", "--name", name, "--devices", devices, *options],
                env=surroundings() | self.environment | environment,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=limit,
            )
        worker = Worker(process, log)
        self.workers.append(worker)
        return worker

    def stop_workers(self) -> None:
        for worker in self.workers:
            worker.stop()
        self.workers.clear()

    def stage_pids(self, run_id: uuid.UUID, node: int = 0) -> list[int]:
        """Every process of a run's attempts that a node started, on this machine: guardian's children and theirs."""
        mark = f"STEERBOARD_STAGE={run_id}/node{node}:" if node else f"STEERBOARD_STAGE={run_id}:"
        return [pid for pid, variables in _environments() if mark.encode() in variables]

    def checkpoint_step(self, run_id: uuid.UUID) -> int:
        """The newest step that the run could resume from, 0 when there is none."""
        folder = self.home / "work" / str(run_id) / "checkpoints"
        names = [path.name for path in folder.glob("a*-step-*")] if folder.is_dir() else []
        return max((int(name.rpartition("-")[2]) for name in names), default=0)

    def kill_stage(self, run_id: uuid.UUID) -> bool:
        """kill -9 of the stage itself, not of its guardian."""
        killed = False
        for pid in self.stage_pids(run_id):
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                if b"steerboard_workers.stages" in command and b"guardian.py" not in command:
                    os.kill(pid, signal.SIGKILL)
                    killed = True
        return killed

    def wait_for_step(self, run_id: uuid.UUID, step: int, seconds: float = PATIENCE) -> None:
        """Wait until a checkpoint of at least `step` is in place."""
        self.wait(lambda: self.checkpoint_step(run_id) >= step, seconds, f"no checkpoint of step {step}", pause=0.002)

    def wait(self, condition: Callable[[], bool], seconds: float, complaint: str, pause: float = 0.05) -> None:
        def with_logs() -> str:
            return "\n".join([complaint, *(worker.log.read_text()[-3000:] for worker in self.workers)])

        wait_until(condition, with_logs, seconds=seconds, pause=pause)


def _environments() -> Iterator[tuple[int, bytes]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                yield int(entry.name), (entry / "environ").read_bytes()
