"""The bytes that a project keeps: what counts, and what is refused beyond them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select, update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.storage_quota import StorageQuotaReached
from steerboard.accounts.tables import Project
from steerboard.datasets.tables import Dataset, SampleRow
from steerboard.platform.database import transaction
from steerboard.registry.tables import Artifact, Model
from steerboard.runs.state import lifecycle
from steerboard.runs.tables import Run, RunCheckpoint
from steerboard_contracts.run_config import RUN_CONFIG
from support.rows.ended_run import ended_run

PROJECT = "/api/v1/projects/default"
QUOTA = f"{PROJECT}/quota"
ROWS = "\n".join(json.dumps({"prompt": f"What is tea {number}?", "response": "A drink. " * 40}) for number in range(20))


def imported(client: TestClient, name: str, status: int = 201) -> Any:
    answer = client.post(f"{PROJECT}/datasets/import", data={"name": name}, files={"file": (f"{name}.jsonl", ROWS)})
    assert answer.status_code == status, answer.text
    return answer.json()


def model(session: Session, project: Project, name: str, **files: int) -> None:
    """`files`: their sizes by their names, by which alone they differ."""
    manifest = [
        {"path": file, "sha256": hashlib.sha256(file.encode()).hexdigest(), "size": files[file]} for file in files
    ]
    artifact = Artifact(
        hash=hashlib.sha256(name.encode()).hexdigest(), size=sum(files.values()), manifest={"files": manifest}
    )
    session.add(artifact)
    session.flush()
    session.add(Model(project_id=project.id, name=name, role="sft", artifact_hash=artifact.hash, info={}))


def run(session: Session, project: Project) -> Run:
    config = RUN_CONFIG.validate_python({"run": "mix", "parts": [{}], "seed": 1})
    given: dict[str, Any] = {"inputs": {}, "reuse": False, "created_by": "tester"}
    return lifecycle.create_run(session, session.get_one(Project, project.id), name="more", config=config, **given)


def test_rows_files_of_models_checkpoints_and_uploads_count(
    client: TestClient, sessions: sessionmaker[Session], project: Project
) -> None:
    assert client.get(QUOTA).json()["used_storage_bytes"] == 0
    imported(client, "tea")
    with transaction(sessions) as session:
        model(session, project, "first", weights=1_000_000, tokenizer=500)
        model(session, project, "second", more_weights=2_000_000, tokenizer=500)
        stopped = ended_run(project.id, name="r", kind="train", config={}, state="failed", reason="x")
        session.add(stopped)
        session.flush()
        files = [{"path": "a", "sha256": "0", "size": 70}, {"path": "b", "sha256": "1", "size": 7}]
        session.add(RunCheckpoint(run_id=stopped.id, attempt=1, step=1, files=files))
    announced = {"file_name": "a.jsonl", "size": 300, "sha256": "0" * 64}
    assert client.post(f"{PROJECT}/imports/uploads", json=announced).status_code == 201
    answer = client.get(QUOTA).json()
    used = answer["used_storage"]
    assert (used["models"], used["checkpoints"], used["uploads"]) == (3_000_500, 77, 300)
    assert len(ROWS) / 20 < used["datasets"] < len(ROWS) * 4
    assert answer["used_storage_bytes"] == sum(used.values())
    with transaction(sessions) as session:
        assert session.scalars(select(Dataset.bytes)).all() == [used["datasets"]]
        # Rows never change, so that they are measured once.
        session.execute(update(SampleRow).values(extra={"more": "x" * 1000}))
    assert client.get(QUOTA).json()["used_storage"] == used


def test_beyond_the_quota_nothing_is_imported_uploaded_derived_or_started(
    client: TestClient, sessions: sessionmaker[Session], project: Project
) -> None:
    imported(client, "tea")
    used = client.get(QUOTA).json()["used_storage_bytes"]
    answer = client.put(QUOTA, json={"storage_bytes": used}).json()
    assert (answer["storage_bytes"], answer["device_hours"]) == (used, None)
    upload = {"file_name": "a.jsonl", "size": 300, "sha256": "0" * 64}
    model_files = [{"path": path, "sha256": "0" * 64, "size": 3} for path in ("config.json", "model.safetensors")]
    file_of_import = {"files": {"file": ("b.jsonl", ROWS)}}
    refused = [
        imported(client, "again", 409),
        client.post(f"{PROJECT}/imports", **file_of_import).json(),
        client.post(f"{PROJECT}/imports/uploads", json=upload).json(),
        client.post(f"{PROJECT}/model-uploads", json={"name": "m", "files": model_files}).json(),
    ]
    assert {problem["code"] for problem in refused} == {"storage_quota_reached"}, refused
    assert "Delete datasets" in refused[0]["hint"]
    with pytest.raises(StorageQuotaReached), transaction(sessions) as session:
        run(session, project)
    assert client.delete(f"{PROJECT}/datasets/tea").status_code in (200, 204)
    imported(client, "again")


def test_an_upload_that_would_not_fit_is_refused_and_one_that_was_announced_goes_on(client: TestClient) -> None:
    upload = {"file_name": "a.jsonl", "size": 300, "sha256": "0" * 64}
    assert client.post(f"{PROJECT}/imports/uploads", json=upload).status_code == 201
    client.put(QUOTA, json={"storage_bytes": 500})
    assert client.post(f"{PROJECT}/imports/uploads", json=upload).status_code == 201
    refused = client.post(f"{PROJECT}/imports/uploads", json={**upload, "sha256": "1" * 64})
    assert (refused.status_code, refused.json()["code"]) == (409, "storage_quota_reached")
    assert "300 bytes of the 500 bytes that it may, and 300 bytes more would not fit" in refused.json()["detail"]
    fits = client.post(f"{PROJECT}/imports/uploads", json={**upload, "size": 200, "sha256": "2" * 64})
    assert fits.status_code == 201


def test_each_quota_is_set_alone(client: TestClient) -> None:
    client.put(QUOTA, json={"device_hours": 2})
    both = client.put(QUOTA, json={"storage_bytes": 10}).json()
    assert (both["device_hours"], both["storage_bytes"]) == (2, 10)
    neither = client.put(QUOTA, json={"storage_bytes": None, "device_hours": None}).json()
    assert (neither["device_hours"], neither["storage_bytes"]) == (None, None)
    assert client.put(QUOTA, json={"storage_bytes": -1}).status_code == 422


def test_another_project_has_a_quota_of_its_own(
    client: TestClient, sessions: sessionmaker[Session], project: Project
) -> None:
    imported(client, "tea")
    client.post("/api/v1/projects", json={"name": "other"})
    client.put(QUOTA.replace("default", "other"), json={"storage_bytes": 0})
    assert client.get(QUOTA.replace("default", "other")).json()["used_storage_bytes"] == 0
    with transaction(sessions) as session:
        assert run(session, project).state == "queued"
