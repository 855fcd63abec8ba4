"""How soon a run begins, as one JSON document: `make bench-start`.

On servers of its own, a worker's supervisor executes runs of three kinds on a tiny model, `--rounds` times each, cold
(a new stage process is started) and warm (it is forked from a stage parent that has its imports done), by turns.
`seconds` is from the claim of a run to the first word of work done: the first row mixed, the first rows scored, the
first optimiser step. `until_end` is from the claim to the run's success. Medians, with all that was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from harness.machine import machine
from harness.measure import say
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import service as accounts
from steerboard.accounts.tables import Project
from steerboard.app.wiring import wire
from steerboard.datasets.imports.loading import import_file
from steerboard.datasets.service import export_for_stage
from steerboard.datasets.tables import Dataset
from steerboard.platform import migrations
from steerboard.platform.database import make_engine, make_sessions, transaction
from steerboard.platform.processes.embedded import EmbeddedServers
from steerboard.platform.settings import Settings, get_settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.service import register_model
from steerboard.runs.state import claims, lifecycle
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.tables import Run, RunOutput
from steerboard_contracts.run_config import RUN_CONFIG
from steerboard_contracts.stage.spec import STAGE_FILE, StageSpec
from steerboard_workers.cpu_threads import usable_cores
from steerboard_workers.supervisor.device_group import DeviceGroup
from steerboard_workers.supervisor.execution import Supervisor
from steerboard_workers.supervisor.process import StageProcess, environment
from steerboard_workers.supervisor.warm_start import StageParent

ROWS = 200
BASE = {"run": "base", "source": "random:tiny-llama", "vocabulary": 400, "hidden": 64, "layers": 2, "heads": 4}
TRAIN = {"run": "train", "lr": 1e-3, "batch": 8, "max_steps": 3, "checkpoint_every": 0}
CONFIGS: dict[str, dict[str, Any]] = {
    "mix": {"run": "mix", "parts": [{}], "size": 100},
    "score": {"run": "score"},
    "train": TRAIN | {"method": "sft"},
}
# A stage's first event about finished work, as opposed to preparation.
WORDS = {"mix": ("rows", "mixing"), "score": ("rows", "scoring"), "train": ("steps", "training")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    # Libraries print what they like; the document alone goes to standard output.
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)
        at_start = machine()
        with tempfile.TemporaryDirectory(prefix="bench-") as name, Bench.started(Path(name)) as bench:
            measured = bench.measure(rounds)
        document = {"machine": at_start | {"load_after": machine()["load"]}, "kinds": summary(measured)}
        print(json.dumps(document, indent=2), file=out)


def summary(measured: dict[tuple[str, bool], list[tuple[float, float]]]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for kind in CONFIGS:
        ways = {
            name: {
                "seconds": round(statistics.median(begun for begun, _ in measured[kind, warm]), 3),
                "until_end": round(statistics.median(ended for _, ended in measured[kind, warm]), 3),
                "all": [round(begun, 3) for begun, _ in measured[kind, warm]],
            }
            for name, warm in (("cold", False), ("warm", True))
        }
        document[kind] = {**ways, "cold_over_warm": round(ways["cold"]["seconds"] / ways["warm"]["seconds"], 1)}
    return document


@dataclass
class Bench:
    """A platform without its API: a project with data, and the models to work with."""

    settings: Settings
    sessions: sessionmaker[Session]
    store: ArtifactStore
    project_id: uuid.UUID
    parent: StageParent
    inputs: dict[str, dict[str, InputRef]] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def started(cls, home: Path) -> Iterator[Bench]:
        wire()
        servers = EmbeddedServers(home, quick=True)
        servers.start()
        for name, value in (
            ("HOME", str(home)),
            ("DATABASE_URL", servers.database_url),
            ("REDIS_URL", servers.redis_url),
        ):
            os.environ[f"STEERBOARD_{name}"] = value
        get_settings.cache_clear()
        settings = get_settings()
        engine = make_engine(settings.database_url)
        parent = StageParent(environment("", settings.stage_threads or usable_cores(), []))
        try:
            migrations.migrate(engine)
            sessions = make_sessions(engine)
            with transaction(sessions) as session:
                project, _ = accounts.ensure_default(session, settings.held_out_fraction)
            bench = cls(settings, sessions, ArtifactStore(settings.artifact_url), project.id, parent)
            bench.prepare(home)
            yield bench
        finally:
            parent.close()
            engine.dispose()
            servers.stop()

    def prepare(self, home: Path) -> None:
        say("data and models")
        colours = ("red", "green", "blue", "yellow")
        rows = [{"prompt": f"Say {colours[row % 4]} {row}.", "response": f"{colours[row % 4]}!"} for row in range(ROWS)]
        pairs = [{"prompt": row["prompt"], "chosen": row["response"], "rejected": "No."} for row in rows]
        data, preferences = self._import(home, "rows", rows), self._import(home, "pairs", pairs)
        folder = home / "base"
        folder.mkdir()
        with transaction(self.sessions) as session:
            given = export_for_stage(session, session.get_one(Dataset, data), folder / "rows.jsonl")
        spec = StageSpec(run_id="base", name="base", config=RUN_CONFIG.validate_python(BASE), inputs={"data.0": given})
        (folder / STAGE_FILE).write_text(spec.model_dump_json())
        subprocess.run([sys.executable, "-m", "steerboard_workers.stages", str(folder)], check=True)
        with transaction(self.sessions) as session:
            base = register_model(
                session,
                self.store,
                session.get_one(Project, self.project_id),
                name="base",
                folder=folder / "outputs" / "model",
                role="base",
                method=None,
                parent_id=None,
                run_id=None,
            ).id
        model = {"model": InputRef(model=base)}
        config = TRAIN | {"method": "reward_model"}
        run = self._create("reward", config, {**model, "data": InputRef(dataset=preferences)})
        self._execute(warm=False)
        with transaction(self.sessions) as session:
            made = session.query(RunOutput).filter(RunOutput.run_id == run, RunOutput.model_id.is_not(None))
            reward = made.one().model_id
        self.inputs = {
            "mix": {"parts.0": InputRef(dataset=data)},
            "score": {"data": InputRef(dataset=data), "reward": InputRef(model=reward)},
            "train": {**model, "data": InputRef(dataset=data)},
        }

    def measure(self, rounds: int) -> dict[tuple[str, bool], list[tuple[float, float]]]:
        """(seconds to the first work, to the end) by kind and whether it was warm; each is done once uncounted."""
        measured: dict[tuple[str, bool], list[tuple[float, float]]] = {}
        for number in range(rounds + 1):
            for kind, config in CONFIGS.items():
                for warm in (False, True) if number % 2 else (True, False):
                    self._create(f"{kind}-{number}-{warm}", config, self.inputs[kind])
                    taken = self._execute(warm=warm, first=WORDS[kind])
                    if number:
                        measured.setdefault((kind, warm), []).append(taken)
            say(f"round {number} of {rounds}")
        return measured

    def _import(self, home: Path, name: str, rows: list[dict[str, str]]) -> uuid.UUID:
        path = home / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        kind = "preferences" if "chosen" in rows[0] else "instructions"
        with transaction(self.sessions) as session:
            project = session.get_one(Project, self.project_id)
            return import_file(session, project, path=path, name=name, kind=kind).dataset.id

    def _create(self, name: str, config: dict[str, Any], inputs: dict[str, InputRef]) -> uuid.UUID:
        with transaction(self.sessions) as session:
            return lifecycle.create_run(
                session,
                session.get_one(Project, self.project_id),
                name=name,
                config=RUN_CONFIG.validate_python(config),
                inputs=inputs,
                created_by="bench",
                reuse=False,
            ).id

    def _execute(self, *, warm: bool, first: tuple[str, str] = ("", "")) -> tuple[float, float]:
        begun: list[float] = []
        warmth: list[bool] = []
        hear = StageProcess.hear

        def heard(stage: StageProcess, line: bytes) -> None:
            event = json.loads(line)
            if event["type"] == "progress" and event["done"] and (event["unit"], event["phase"]) == first:
                begun.append(time.monotonic())
                warmth.append(stage.warm)
            hear(stage, line)

        supervisor = Supervisor(
            self.sessions,
            self.store,
            self.settings,
            group=DeviceGroup(),
            stopping=threading.Event(),
            parent=self.parent if warm else None,
        )
        at = time.monotonic()
        with transaction(self.sessions) as session:
            claim = claims.claim_next(
                session, pool="default", owner="bench", worker="bench", devices=1, lease_seconds=60.0
            )
        assert claim is not None
        with patch.object(StageProcess, "hear", heard):
            supervisor.execute(claim)
        ended = time.monotonic()
        with transaction(self.sessions) as session:
            run = session.get_one(Run, claim.run_id)
            assert run.state == "succeeded", (run.name, run.reason)
        assert set(warmth) <= {warm}
        return (begun[0] if begun else ended) - at, ended - at


if __name__ == "__main__":
    main()
