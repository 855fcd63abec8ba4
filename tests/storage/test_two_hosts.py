"""Two workers that share nothing but the database, Redis and S3 finish a sharded scoring, though one is cut off."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker
from transformers import LlamaForSequenceClassification

from steerboard.accounts.tables import Project
from steerboard.datasets.imports.loading import import_file
from steerboard.datasets.tables import Dataset, Reward
from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.service import register_model
from steerboard.runs.state import lifecycle
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.tables import Run, RunAttempt, RunOutput
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.run_config import RUN_CONFIG
from steerboard_contracts.run_kinds.base import BaseModelConfig
from steerboard_workers.stages.base import random_llama, train_tokenizer
from steerboard_workers.stages.models.model_saving import save_model
from support.patience import wait_until
from support.processes.surroundings import surroundings
from support.servers.s3_server import BUCKET, S3Server

ROWS, SHARDS = 8000, 4
STORE = f"s3://{BUCKET}/team"


@dataclass
class Host:
    """A worker with a folder of its own, and whatever it writes below it."""

    name: str
    home: Path
    process: subprocess.Popen[bytes]


@dataclass
class Cluster:
    sessions: sessionmaker[Session]
    hosts: dict[str, Host]
    folder: Path
    environment: dict[str, str]

    def start(self, name: str) -> Host:
        home = self.folder / name
        home.mkdir(mode=0o700)
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "steerboard_workers.worker", "--name", name],
                env=surroundings() | self.environment | {"STEERBOARD_HOME": str(home)},
                cwd=home,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.hosts[name] = Host(name, home, process)
        return self.hosts[name]

    def wait(self, condition: Callable[[], bool], seconds: float, complaint: str, pause: float = 0.05) -> None:
        def with_logs() -> str:
            return "\n".join([complaint, *((self.folder / f"{name}.log").read_text()[-4000:] for name in self.hosts)])

        wait_until(condition, with_logs, seconds=seconds, pause=pause)


@pytest.fixture
def cluster(
    settings: Settings, sessions: sessionmaker[Session], s3: S3Server, tmp_path: Path, stage_parent: Path
) -> Iterator[Cluster]:
    environment = {
        "STEERBOARD_ARTIFACT_URL": STORE,
        "STEERBOARD_LEASE_SECONDS": "5",
        "STEERBOARD_HEARTBEAT_SECONDS": "0.5",
        "STEERBOARD_SWEEP_SECONDS": "0.5",
        "STEERBOARD_POLL_SECONDS": "0.5",
        "STEERBOARD_RETRY_SECONDS": "0.1",
        "STEERBOARD_STAGE_THREADS": "1",
        "STEERBOARD_STAGE_PARENT": str(stage_parent),
    }
    made = Cluster(sessions, {}, tmp_path / "hosts", environment)
    made.folder.mkdir()
    yield made
    for host in made.hosts.values():
        host.process.kill()
        host.process.wait()


@pytest.fixture
def scoring(cluster: Cluster, sessions: sessionmaker[Session], project: Project, tmp_path: Path) -> uuid.UUID:
    """A queued scoring in shards. The files that it was made of are gone again."""
    files = tmp_path / "origin"
    files.mkdir()
    with (files / "rows.jsonl").open("w") as file:
        for number in range(ROWS):
            row = {"prompt": f"Say red {number}?", "response": f"You said {number % 97} times that the house is red."}
            file.write(json.dumps(row) + "\n")
    tokenizer = train_tokenizer(["Say red 123? You said 45 times that the house is red."] * 20, 400, 128)
    config = BaseModelConfig(source="random:tiny-llama", hidden=32, layers=1, heads=2, max_length=128)
    plain = random_llama(config, tokenizer)
    judge = LlamaForSequenceClassification(type(plain.config)(**{**plain.config.to_dict(), "num_labels": 1}))
    torch.nn.init.normal_(judge.score.weight)
    info = ModelInfo(
        role="reward", method="reward_model", architecture="LlamaForCausalLM", parameters=1, max_length=128
    )
    save_model(files / "reward", judge, tokenizer, info)
    with transaction(sessions) as session:
        mine = session.get_one(Project, project.id)
        data = import_file(session, mine, path=files / "rows.jsonl", name="rows", kind="instructions").dataset
        model = register_model(
            session,
            ArtifactStore(STORE),
            mine,
            name="reward",
            folder=files / "reward",
            role="reward",
            method="reward_model",
            parent_id=None,
            run_id=None,
        )
        run = lifecycle.create_run(
            session,
            mine,
            name="labels",
            config=RUN_CONFIG.validate_python({"run": "score", "shards": SHARDS, "batch_tokens": 256}),
            inputs={"data": InputRef(dataset=data.id), "reward": InputRef(model=model.id)},
            created_by="tester",
        )
    shutil.rmtree(files)
    return run.id


@pytest.mark.long
@pytest.mark.parametrize("cut", ["killed", "frozen"])
def test_every_row_is_scored_once_though_one_host_is_cut_off(
    cluster: Cluster, scoring: uuid.UUID, sessions: sessionmaker[Session], s3: S3Server, cut: str
) -> None:
    first, second = cluster.start("first"), cluster.start("second")

    def in_the_middle() -> bool:
        """Some of a shard's rows are scored, and not all of them."""
        done = [path.read_bytes().count(b"\n") - 1 for path in first.home.glob("work/*/checkpoints/a1-rows.jsonl")]
        return any(0 < rows < ROWS // SHARDS for rows in done)

    cluster.wait(in_the_middle, 100, "no shard began", pause=0.01)
    if cut == "killed":
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        shutil.rmtree(first.home, ignore_errors=True)  # the machine is gone, with all that it had
    else:
        first.process.send_signal(signal.SIGSTOP)

    def ended() -> bool:
        with transaction(sessions) as session:
            return session.get_one(Run, scoring).state in ("succeeded", "failed")

    cluster.wait(ended, 150, "the scoring did not end")
    with transaction(sessions) as session:
        parent = session.get_one(Run, scoring)
        assert parent.state == "succeeded", parent.reason
        lost = session.scalars(select(RunAttempt).where(RunAttempt.worker == "first")).all()
        assert [attempt.reason.partition(":")[0] for attempt in lost if attempt.reason] == ["worker_lost"]
        assert set(session.scalars(select(RunAttempt.worker))) == {"first", "second"}
        labelled = session.scalars(
            select(Dataset).join(RunOutput, RunOutput.dataset_id == Dataset.id).where(RunOutput.run_id == scoring)
        ).one()
        assert labelled.rows == ROWS
        rows = session.execute(select(func.count(), func.count(Reward.row.distinct()), func.max(Reward.row)))
        assert rows.one() == (ROWS, ROWS, ROWS - 1)
    assert sum(1 for name in s3.objects() if name.startswith("team/blobs/")) >= SHARDS
    assert not list(second.home.rglob("blobs"))
    if cut == "frozen":
        first.process.send_signal(signal.SIGCONT)
        log = cluster.folder / "first.log"
        cluster.wait(lambda: "no longer holds its lease" in log.read_text(), 20, "it continues")
        with transaction(sessions) as session:
            assert session.scalar(select(func.count()).select_from(Reward)) == ROWS
