"""Endpoints over HTTP: their keys go in and never come out."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry import service
from support.models.model_folders import write_model
from support.servers.other_server import Answer, OtherServer, Seen, other_server

BASE = "/api/v1/projects/default/endpoints"
KEY = "sk-very-secret"
GIVEN = {"name": "vllm", "base_url": "https://gpu.example/v1/", "model": "policy-7b"}


@pytest.fixture
def other() -> Iterator[OtherServer]:
    with other_server() as server:
        yield server


@pytest.fixture
def policy(sessions: sessionmaker[Session], project: Project, store: ArtifactStore, tmp_path: Path) -> str:
    with transaction(sessions) as session:
        model = service.register_model(
            session,
            store,
            project,
            name="policy",
            folder=write_model(tmp_path / "policy"),
            role="sft",
            method="sft",
            parent_id=None,
            run_id=None,
        )
        return str(model.id)


def create(client: TestClient, **more: Any) -> Any:
    answer = client.post(BASE, json={**GIVEN, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_an_endpoint_is_created_changed_and_deleted(client: TestClient, policy: str) -> None:
    made = create(client, policy_model="policy")
    assert (made["base_url"], made["has_key"]) == ("https://gpu.example/v1", False)
    assert made["policy_model"] == {"id": policy, "name": "policy"}
    changed = client.patch(f"{BASE}/vllm", json={"model": "other", "policy_model": None}).json()
    assert (changed["model"], changed["policy_model"], changed["name"]) == ("other", None, "vllm")
    assert client.get(BASE).json() == [changed]
    assert client.delete(f"{BASE}/{made['id']}").status_code == 204
    assert client.get(BASE).json() == []
    actions = [entry["action"] for entry in client.get("/api/v1/projects/default/audit").json()["items"]]
    assert actions == ["endpoint.delete", "endpoint.change", "endpoint.create"]


def test_another_address_takes_no_guidance_unless_that_is_said(client: TestClient) -> None:
    assert create(client)["guides"] is False
    there = f"{BASE}/vllm"
    assert client.patch(there, json={"guides": True}).json()["guides"] is True
    assert client.patch(there, json={"model": "other", "base_url": GIVEN["base_url"]}).json()["guides"] is True
    assert client.patch(there, json={"base_url": "https://gpu.example/v2"}).json()["guides"] is False
    assert client.patch(there, json={"base_url": "https://gpu.example/v3", "guides": True}).json()["guides"] is True


@pytest.mark.usefixtures("policy")
def test_a_name_means_one_thing(client: TestClient) -> None:
    create(client)
    for name in ("vllm", "policy"):
        answer = client.post(BASE, json={**GIVEN, "name": name})
        assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")
    assert client.patch(f"{BASE}/vllm", json={"name": "policy"}).json()["code"] == "name_taken"


def test_a_model_that_an_endpoint_serves_stays(client: TestClient, policy: str) -> None:
    create(client, policy_model=policy)
    assert client.delete("/api/v1/projects/default/models/policy").json()["code"] == "in_use"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"base_url": "https://user:pw@gpu.example/v1"}, "bad_url"),
        ({"base_url": "https://gpu.example/v1?key=1"}, "bad_url"),
        ({"base_url": "gpu.example"}, "bad_url"),
        ({"name": "a b"}, "invalid_name"),
        ({"policy_model": "nobody"}, "unknown_model"),
        ({"api_key": KEY + "\nX-Evil: 1"}, "invalid_request"),
        ({"api_key": KEY + "ä"}, "invalid_request"),
    ],
)
def test_what_cannot_be_used_is_refused(client: TestClient, given: dict[str, str], code: str) -> None:
    answer = client.post(BASE, json={**GIVEN, **given})
    assert answer.json()["code"] == code
    assert KEY not in answer.text


def test_a_key_is_sealed_and_stands_nowhere_in_clear(
    client: TestClient, app: FastAPI, sessions: sessionmaker[Session], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    made = client.post(BASE, json={**GIVEN, "api_key": KEY}, headers={"Idempotency-Key": "one"})
    assert made.json()["has_key"] is True
    client.patch(f"{BASE}/vllm", json={"api_key": KEY})
    secrets: Secrets = app.state.secrets
    with sessions() as session:
        sealed = session.scalar(text("SELECT api_key_sealed FROM endpoints"))
        assert secrets.open(sealed or "") == KEY
        for table in ("endpoints", "idempotency_keys", "audit_log", "events"):
            assert KEY not in str(session.execute(text(f"SELECT * FROM {table}")).all())
    assert KEY not in caplog.text + made.text


def test_a_key_is_not_sent_to_a_server_that_it_was_not_given_for(client: TestClient) -> None:
    create(client, api_key=KEY)
    for url in ("https://evil.example/v1", "http://gpu.example/v1", "https://gpu.example:444/v1"):
        assert client.patch(f"{BASE}/vllm", json={"base_url": url}).json()["code"] == "api_key_needed"
    assert client.patch(f"{BASE}/vllm", json={"base_url": "https://gpu.example/v2"}).json()["has_key"] is True
    answer = client.patch(f"{BASE}/vllm", json={"base_url": "https://evil.example/v1", "api_key": None})
    assert answer.json()["has_key"] is False


def test_a_check_asks_the_endpoint_now(client: TestClient, app: FastAPI, other: OtherServer) -> None:
    app.state.settings.allowed_private = "127.0.0.1"
    create(client, base_url=f"{other.url}/v1", api_key=KEY)
    held: list[int] = []

    def answer(_: Seen) -> Answer:
        held.append(app.state.engine.pool.checkedout())
        return Answer.json({"object": "list", "data": [{"id": "policy-7b"}, {"id": "other"}]})

    other.answer = answer
    check = client.post(f"{BASE}/vllm/check", headers={"Idempotency-Key": "one"}).json()
    assert (check["ok"], check["models"], check["problem"]) == (True, ["policy-7b", "other"], None)
    assert (other.seen[0].path, other.seen[0].headers["authorization"]) == ("/v1/models", f"Bearer {KEY}")
    assert held == [0], "no connection of the database is held while somebody else's server is asked"
    client.patch(f"{BASE}/vllm", json={"model": "gone"})
    assert client.post(f"{BASE}/vllm/check").json()["problem"]["code"] == "model_not_served"


def test_a_check_says_what_is_wrong(client: TestClient, app: FastAPI, other: OtherServer) -> None:
    app.state.settings.allowed_private = "127.0.0.1"
    create(client, base_url=f"{other.url}/v1", api_key=KEY)
    app.state.settings.allowed_private = ""
    refused = client.post(f"{BASE}/vllm/check").json()
    assert (refused["ok"], refused["problem"]["code"]) == (False, "address_refused")
    assert other.seen == []
    app.state.settings.allowed_private = "127.0.0.1"
    other.answer = lambda _: Answer.json({"error": {"message": f"Incorrect API key: {KEY}"}}, 401)
    answer = client.post(f"{BASE}/vllm/check")
    assert answer.json()["problem"]["code"] == "endpoint_refused"
    assert KEY not in answer.text
    for nonsense in (Answer(200, [b"<html>"]), Answer.json({"data": [{"id": None}]}), Answer.json([])):
        other.answer = lambda _, nonsense=nonsense: nonsense  # type: ignore[misc]
        assert client.post(f"{BASE}/vllm/check").json()["problem"]["code"] == "endpoint_nonsense"


def test_a_private_address_is_refused_at_registration_with_the_setting(client: TestClient, app: FastAPI) -> None:
    private = {"base_url": "http://127.0.0.1:8000/v1"}
    made = client.post(BASE, json={**GIVEN, **private})
    assert (made.status_code, made.json()["code"]) == (422, "address_refused")
    assert "STEERBOARD_ALLOWED_PRIVATE=127.0.0.1:8000 " in made.json()["hint"]
    assert client.get(BASE).json() == []
    create(client)
    assert client.patch(f"{BASE}/vllm", json=private).json()["code"] == "address_refused"
    assert client.get(BASE).json()[0]["base_url"] == "https://gpu.example/v1"
    app.state.settings.allowed_private = "127.0.0.1:8000"
    assert client.patch(f"{BASE}/vllm", json=private).status_code == 200


def test_another_project_and_a_reader_change_nothing(client: TestClient) -> None:
    create(client)
    client.post("/api/v1/projects", json={"name": "second"})
    assert client.get("/api/v1/projects/second/endpoints").json() == []
    assert client.delete("/api/v1/projects/second/endpoints/vllm").json()["code"] == "unknown_endpoint"
    token = client.post("/api/v1/projects/default/tokens", json={"name": "r", "scopes": ["read"]}).json()["token"]
    reader = {"Authorization": f"Bearer {token}"}
    assert len(client.get(BASE, headers=reader).json()) == 1
    assert client.post(BASE, json=GIVEN, headers=reader).status_code == 403
    assert client.post(f"{BASE}/vllm/check", headers=reader).status_code == 403
