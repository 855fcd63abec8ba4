"""Doctor, health, downloads and imports of a platform whose artifacts are on S3."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.app.main import attach
from steerboard.cli.server import doctor
from steerboard.datasets.errors import ImportFileGone
from steerboard.datasets.imports.files import ImportFiles
from steerboard.platform.database import new_id, transaction
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.service import register_model
from support.models.model_folders import write_model
from support.servers.app_client import AppClient
from support.servers.s3_server import BUCKET, S3Server

URL = f"s3://{BUCKET}/team"


@pytest.fixture
def on_s3(settings: Settings, s3: S3Server) -> Settings:
    return settings.model_copy(update={"artifact_url": URL})


@pytest.fixture
def api(app: FastAPI, on_s3: Settings, sessions: sessionmaker[Session], token: str) -> Iterator[TestClient]:
    attach(app, on_s3, sessions)
    with AppClient(app, headers={"Authorization": f"Bearer {token}"}) as signed_in:
        yield signed_in


def test_a_file_of_a_model_is_downloaded_and_a_missing_one_is_an_error(
    api: TestClient, s3: S3Server, sessions: sessionmaker[Session], project: Project, tmp_path: Path
) -> None:
    folder = write_model(tmp_path / "m", weights=b"weights")
    store = ArtifactStore(URL)
    with transaction(sessions) as session:
        mine = session.get_one(Project, project.id)
        register_model(
            session, store, mine, name="m", folder=folder, role="sft", method="sft", parent_id=None, run_id=None
        )
    path = "/api/v1/projects/default/models/m/files/model.safetensors"
    assert api.get(path).content == (folder / "model.safetensors").read_bytes()
    store.remove([sha256 for sha256, _ in store.blobs()])
    answer = api.get(path)
    assert (answer.status_code, answer.json()["code"]) == (500, "corrupt_artifact")


def test_a_file_is_uploaded_for_an_import(api: TestClient, s3: S3Server) -> None:
    rows = b'{"prompt": "a", "response": "b"}\n' * 3
    answer = api.post("/api/v1/projects/default/imports", files={"file": ("rows.jsonl", io.BytesIO(rows))})
    assert answer.status_code == 201, answer.text
    assert s3.objects()[f"team/imports/{answer.json()['id']}/0"] == rows


def test_files_of_imports_are_kept_listed_and_removed(s3: S3Server) -> None:
    files, ids = ImportFiles(URL), [new_id(), new_id()]
    for id_ in ids:
        for name in ("0", "1"):
            files.put(id_, name, io.BytesIO(name.encode() * 1000))
    assert sorted(files.import_ids()) == sorted(ids)
    with files.open(ids[0], "1") as file:
        file.seek(990)
        assert file.read() == b"1" * 10
    files.remove(ids[0], "1")
    assert [files.exists(ids[0], name) for name in ("0", "1")] == [True, False]
    files.remove(ids[0])
    assert files.import_ids() == [ids[1]]
    with pytest.raises(ImportFileGone):
        files.open(ids[0], "0")


def test_health_and_doctor_say_that_the_store_is_ill_and_why(
    app: FastAPI, on_s3: Settings, sessions: sessionmaker[Session], s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def health() -> tuple[str, str]:
        attach(app, on_s3, sessions)
        with AppClient(app) as client:
            answer = client.get("/api/v1/system/health").json()
            return answer["status"], answer["artifacts"]

    assert health() == ("ok", "ok")
    assert doctor._store(on_s3).ok
    assert s3.objects() == {}
    gone = on_s3.model_copy(update={"artifact_url": "s3://gone/team"})
    check = doctor._store(gone)
    assert not check.ok
    assert "no bucket 'gone'" in check.found
    s3.down = True
    assert health() == ("degraded", "unavailable")
    check = doctor._store(on_s3)
    assert not check.ok
    assert "cannot be reached" in check.found
    assert "AWS_ENDPOINT_URL" in check.mend
