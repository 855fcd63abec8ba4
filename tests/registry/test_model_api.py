"""Models over HTTP: lists, files, lineage."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry import service
from support.models.model_folders import write_model

BASE = "/api/v1/projects/default/models"


@pytest.fixture
def family(sessions: sessionmaker[Session], project: Project, store: ArtifactStore, tmp_path: Path) -> None:
    """`child` comes from `parent`."""
    with transaction(sessions) as session:
        parent = service.register_model(
            session,
            store,
            project,
            name="parent",
            folder=write_model(tmp_path / "parent"),
            role="sft",
            method="sft",
            parent_id=None,
            run_id=None,
        )
        folder = write_model(tmp_path / "child", "reward", "reward_model", b"456")
        service.register_model(
            session,
            store,
            project,
            name="child",
            folder=folder,
            role="reward",
            method="reward_model",
            parent_id=parent.id,
            run_id=None,
        )


@pytest.mark.usefixtures("family")
def test_models_are_listed_newest_first_and_by_role(client: TestClient) -> None:
    assert [model["name"] for model in client.get(BASE).json()["items"]] == ["child", "parent"]
    (reward,) = client.get(BASE, params={"role": "reward"}).json()["items"]
    assert (reward["name"], reward["method"], reward["info"]["parameters"]) == ("child", "reward_model", 3)
    assert client.get(f"{BASE}/nobody").json()["code"] == "unknown_model"


@pytest.mark.usefixtures("family")
def test_every_file_arrives_as_it_was_stored(client: TestClient, tmp_path: Path) -> None:
    model = client.get(f"{BASE}/child").json()
    assert {file["path"] for file in model["files"]} == {p.name for p in (tmp_path / "child").iterdir()}
    for file in model["files"]:
        content = client.get(f"{BASE}/child/files/{file['path']}").content
        assert content == (tmp_path / "child" / file["path"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == file["sha256"]
    for path in ("nothing.json", "../parent/config.json", "%2e%2e/config.json"):
        assert client.get(f"{BASE}/child/files/{path}").status_code == 404


@pytest.mark.usefixtures("family")
def test_lineage_names_parents_and_children(client: TestClient) -> None:
    child = client.get(f"{BASE}/child/lineage").json()
    assert [node["name"] for node in child["nodes"]] == ["child", "parent"]
    assert [edge["role"] for edge in child["edges"]] == ["parent"]
    parent = client.get(f"{BASE}/parent/lineage").json()
    assert [node["name"] for node in parent["children"]] == ["child"]
