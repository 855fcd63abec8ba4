"""A home that a former release filled, with a bit of everything in it, under this release.

`home-71646aa.tar.xz` was packed by `make_home.py`: datasets, a pipeline with its models and report, an evaluation that
a person has ranked, an endpoint with its sealed key, members, a collection, and a backup of it all.
"""

from __future__ import annotations

import hashlib
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select, text
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import service as accounts
from steerboard.accounts.tables import Project
from steerboard.app.main import attach
from steerboard.maintenance import manifest, restore
from steerboard.platform import migrations
from steerboard.platform.database import make_engine, make_sessions, transaction
from steerboard.platform.security.secrets import KEY_FILE, Secrets
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.platform.storage.from_url import open_storage
from steerboard.registry.tables import Endpoint
from support.servers.app_client import AppClient

PACKED = Path(__file__).with_name("home-71646aa.tar.xz")


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    with tarfile.open(PACKED) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


@dataclass(frozen=True)
class Upgraded:
    """The API of this release over what the former one left."""

    client: TestClient
    sessions: sessionmaker[Session]
    settings: Settings

    def get(self, path: str) -> Any:
        answer = self.client.get(f"/api/v1/projects/default/{path}")
        assert answer.status_code == 200, (path, answer.text)
        return answer.json()


@pytest.fixture(params=["in place", "from its backup"])
def upgraded(
    request: pytest.FixtureRequest, unpacked: Path, shared_app: FastAPI, database_url: str, redis_url: str
) -> Iterator[Upgraded]:
    """Its home, or its backup in a new home."""
    source = open_storage(f"file://{unpacked / 'backup'}")
    in_place = request.param == "in place"
    home = unpacked / ("home" if in_place else "new home")
    if not in_place:  # its key is not in the backup, and was kept elsewhere
        home.mkdir()
        shutil.copy(unpacked / "home" / KEY_FILE, home)
    settings = Settings(
        home=home, database_url=database_url, redis_url=redis_url, artifact_url=f"file://{home}/artifacts"
    )
    engine = make_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    if in_place:
        backup = manifest.load(source, manifest.newest(source))
        with engine.begin() as connection:
            restore.fill(connection, backup, source, None)
        assert backup.revision != migrations.newest_revision(), "or nothing would be upgraded"
        migrations.migrate(engine)
    else:
        restore.restore(engine, ArtifactStore(settings.artifact_url), source, home=home)
    sessions = make_sessions(engine)
    with transaction(sessions) as session:
        project = session.scalars(select(Project)).one()
        secret = accounts.create_token(session, name="after the upgrade", scopes=["admin"], project_id=project.id)[1]
    attach(shared_app, settings, sessions)
    with AppClient(shared_app) as client:
        client.headers["Authorization"] = f"Bearer {secret}"
        yield Upgraded(client, sessions, settings)
    engine.dispose()


def test_datasets_keep_their_rows(upgraded: Upgraded) -> None:
    known = {dataset["name"]: (dataset["kind"], dataset["rows"]) for dataset in upgraded.get("datasets")["items"]}
    assert known["dialogues"] == ("instructions", 40)
    assert known["pairs"] == ("preferences", 40)
    assert known["small-1.labelled"] == ("labelled", 12)
    assert known["small-1.answers"] == ("instructions", 12)
    rows = upgraded.get("datasets/pairs/samples?limit=50")["items"]
    assert {row["extra"]["topic"] for row in rows} == {0, 1, 2}, "columns beside the sample"
    assert all(row["reward"] is not None for row in upgraded.get("datasets/small-1.labelled/samples")["items"])


def test_models_keep_their_files(upgraded: Upgraded) -> None:
    models = {model["name"]: model["role"] for model in upgraded.get("models")["items"]}
    assert models == {"small-1.base": "base", "small-1.sft": "sft", "small-1.reward": "reward", "small-1.dt": "policy"}
    for file in upgraded.get("models/small-1.dt")["files"]:
        content = upgraded.client.get(f"/api/v1/projects/default/models/small-1.dt/files/{file['path']}").content
        assert hashlib.sha256(content).hexdigest() == file["sha256"]
    parents = {node["name"] for node in upgraded.get("models/small-1.dt/lineage")["nodes"]}
    assert {"small-1.base", "small-1.sft"} <= parents


def test_the_pipeline_shows_its_runs_and_its_report(upgraded: Upgraded) -> None:
    pipeline = upgraded.get("pipelines/small-1")
    assert pipeline["state"] == "succeeded"
    for run in pipeline["runs"]:
        assert run["state"] == "succeeded"
        assert upgraded.get(f"runs/{run['id']}")["attempts"] or run["reused_from"]
        upgraded.get(f"runs/{run['id']}/logs")
    trained = next(run for run in pipeline["runs"] if run["name"] == "dt")
    assert upgraded.get(f"runs/{trained['id']}/metrics")
    methods = upgraded.get("pipelines/small-1/report")["methods"]
    assert [(row["entrant"], row["score"]) for row in methods] == [
        ("small-1.sft", None),
        ("small-1.dt", -5.0),
        ("small-1.dt", 5.0),
    ]


def test_the_evaluation_keeps_answers_rankings_and_rewards(upgraded: Upgraded) -> None:
    evaluation = upgraded.get("evaluations/people")
    assert evaluation["state"] == "answered"
    assert [entrant["name"] for entrant in evaluation["entrants"]] == ["sft", "dt"]
    (campaign,) = upgraded.get("evaluations/people/campaigns")["items"]
    rankings = upgraded.get(f"evaluations/people/campaigns/{campaign['id']}/rankings")["items"]
    assert [ranking["annotator"] for ranking in rankings] == ["ann"] * 3
    report = upgraded.get("evaluations/people/report")
    (human,) = report["human"]
    assert human["campaign"] == "first"


def test_people_secrets_and_collections_are_there(upgraded: Upgraded) -> None:
    members = {member["user"]: member["role"] for member in upgraded.get("members")["items"]}
    assert members["ann"] == "annotator"
    assert members["vera"] == "viewer"
    assert [collection["name"] for collection in upgraded.get("collections")] == ["kept"]
    with transaction(upgraded.sessions) as session:
        sealed = session.scalars(select(Endpoint)).one().api_key_sealed
    assert sealed is not None
    assert Secrets(upgraded.settings).open(sealed) == "sk-former-1234"
