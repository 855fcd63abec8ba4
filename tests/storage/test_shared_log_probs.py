"""Log-probs that one machine has computed are found by a run on another, whole or not at all."""

from __future__ import annotations

import datetime as dt
import json
import re
import sys
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.maintenance.stored_log_probs import clear_log_probs
from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.runs.tables import RunLog
from steerboard_contracts.files.resumable_rows import ResumableRows
from steerboard_workers.supervisor import log_prob_sharing

RUN, OTHER = "0198a5a0-0000-7000-8000-000000000001", "0198a5a0-0000-7000-8000-000000000002"


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(f"file://{tmp_path}/store")


@pytest.fixture
def homes(tmp_path: Path) -> list[Path]:
    """The same cache on two machines."""
    folders = [tmp_path / home / "project-model" for home in ("here", "there")]
    for folder in folders:
        folder.mkdir(parents=True)
    return folders


def computed(folder: Path, run: str, *keys: str, attempt: int = 1) -> None:
    with ResumableRows(folder, attempt, ("key",), f"{run}-") as rows:
        rows.add([{"key": key, "values": [1.0]} for key in keys])


def known(folder: Path) -> set[str]:
    with ResumableRows(folder, 9, ("key",), "reader-") as rows:
        return {key for (key,) in rows.rows}


def test_a_run_elsewhere_finds_what_one_here_has_computed(store: ArtifactStore, homes: list[Path]) -> None:
    here, there = homes
    computed(here, RUN, "a", "b")
    computed(here, RUN, "c", attempt=2)
    (here / f"a3-{RUN}-rows.jsonl").write_text('{"key": "torn')
    computed(here, OTHER, "of another run")
    log_prob_sharing.publish(store, [here], RUN)
    for _ in range(2):
        log_prob_sharing.fetch(store, [there])
    assert known(there) == {"a", "b", "c"}
    assert len(list(there.glob("a0-*"))) == 1
    log_prob_sharing.fetch(store, [here])
    assert not list(here.glob("a0-*"))  # it has them already


def test_a_run_that_computed_nothing_stores_nothing(store: ArtifactStore, homes: list[Path]) -> None:
    computed(homes[0], RUN)
    log_prob_sharing.publish(store, homes, RUN)
    assert not list(store.storage.files("log-probs/"))


def test_a_damaged_file_is_not_used(store: ArtifactStore, homes: list[Path], tmp_path: Path) -> None:
    here, there = homes
    computed(here, RUN, "a")
    log_prob_sharing.publish(store, [here], RUN)
    [file] = (tmp_path / "store").rglob("*.jsonl")
    row = json.loads(file.read_text())
    file.chmod(0o644)
    file.write_text(json.dumps(row | {"values": [2.0]}) + "\n")
    log_prob_sharing.fetch(store, [there])
    assert not known(there)
    assert not list(there.glob(".*"))


def test_a_store_that_is_away_costs_no_run(store: ArtifactStore, homes: list[Path], tmp_path: Path) -> None:
    computed(homes[0], RUN, "a")
    (tmp_path / "store").write_text("no folder")
    log_prob_sharing.publish(store, homes, RUN)
    log_prob_sharing.fetch(store, homes)
    assert known(homes[0]) == {"a"}


def test_old_ones_are_cleared(store: ArtifactStore, homes: list[Path]) -> None:
    computed(homes[0], RUN, "a")
    log_prob_sharing.publish(store, homes, RUN)
    assert clear_log_probs(store, age=dt.timedelta(hours=1)) == 0
    size = clear_log_probs(store, age=dt.timedelta(0), dry_run=True)
    assert size > 0
    assert clear_log_probs(store, age=dt.timedelta(0)) == size
    assert not list(store.storage.files("log-probs/"))


@pytest.mark.long
def test_a_worker_finds_the_log_probs_that_another_has_computed(
    client: httpx.Client, sessions: sessionmaker[Session], project: Project, settings: Settings, tmp_path: Path
) -> None:
    """The store that both have is the only way: neither sees the other's disk."""
    sys.path.append(str(Path(__file__).parents[1] / "evaluation"))
    from evaluation_world import EvaluationWorld, write_models

    write_models(tmp_path / "models")
    store = ArtifactStore(settings.artifact_url)
    world = EvaluationWorld(client, sessions, project, settings, store, tmp_path / "models")
    words = ("red", "green", "blue", "apple", "pear", "house", "tree")
    pairs = [{"prompt": f"say {word}", "chosen": f"{word} {word}", "rejected": "no"} for word in words]
    world.dataset("pairs", pairs, "preferences")
    matches = []
    for beta, home in ((0.1, "here"), (0.3, "there")):
        config = {"run": "train", "method": "dpo", "beta": beta, "batch": 2, "max_steps": 2}
        world.post("runs", {"name": home, "config": config, "inputs": {"model": "sft", "data": "pairs"}})
        run = world.supervise(home=tmp_path / home)
        assert run.state == "succeeded", run.reason
        with transaction(sessions) as session:
            lines = session.scalars(select(RunLog.message).where(RunLog.run_id == run.id)).all()
        matches += [c for line in lines if (c := re.match(r"log-probs of reference: (\d+) of (\d+) ", line))]
    (first, of_first), (second, of_second) = (map(int, match.groups()) for match in matches)
    assert first == 0
    assert second == of_second == of_first
