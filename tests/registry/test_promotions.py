"""One policy and one reward model are in production, despite concurrent promotions."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import AuditEntry, Project
from steerboard.platform.database import transaction
from steerboard.platform.events.tables import Event
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry import service
from support.models.model_folders import write_model

BASE = "/api/v1/projects/default/models"
Add = Callable[..., None]


@pytest.fixture
def add(sessions: sessionmaker[Session], project: Project, store: ArtifactStore, tmp_path: Path) -> Add:
    def run(*names: str, role: str = "sft", method: str = "sft") -> None:
        for name in names:
            with transaction(sessions) as session:
                service.register_model(
                    session,
                    store,
                    project,
                    name=name,
                    folder=write_model(tmp_path / name, role, method),  # type: ignore[arg-type]
                    role=role,  # type: ignore[arg-type]
                    method=method,
                    parent_id=None,
                    run_id=None,
                )

    return run


def promote(client: TestClient, model: str, stage: str | None, **body: str) -> int:
    return client.post(f"{BASE}/{model}/promotions", json={"stage": stage, **body}).status_code


def in_production(client: TestClient) -> list[str]:
    return [model["name"] for model in client.get(BASE, params={"stage": "production"}).json()["items"]]


def test_a_promoted_model_replaces_the_former_one_and_both_histories_say_so(
    client: TestClient, add: Add, sessions: sessionmaker[Session]
) -> None:
    add("a", "b")
    add("judge", role="reward", method="reward_model")
    assert promote(client, "a", "candidate") == 201
    assert promote(client, "a", "production", note="ships on Monday") == 201
    assert promote(client, "judge", "production") == 201
    assert promote(client, "b", "production") == 201
    assert in_production(client) == ["judge", "b"]
    assert client.get(f"{BASE}/a").json()["stage"] is None
    history = client.get(f"{BASE}/a/promotions").json()
    assert [(entry["stage"], entry["note"]) for entry in history] == [
        (None, "replaced by b"),
        ("production", "ships on Monday"),
        ("candidate", ""),
    ]
    assert history[0]["replaced_by"] == {"id": client.get(f"{BASE}/b").json()["id"], "name": "b"}
    assert history[1]["replaced_by"] is None
    with sessions() as session:
        last = session.scalars(select(Event).where(Event.type == "model.promoted").order_by(Event.id.desc())).first()
        audited = session.scalars(select(AuditEntry.target).where(AuditEntry.action == "model.promote")).all()
    assert last is not None
    assert (last.payload["name"], last.payload["replaced"]["name"]) == ("b", "a")
    assert sorted(audited) == ["a", "a", "b", "judge"]


def test_promotions_at_the_same_moment_leave_one_in_production(client: TestClient, add: Add) -> None:
    names = [f"m{number}" for number in range(6)]
    add(*names)
    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(lambda name: promote(client, name, "production"), names)) == {201}
    (left,) = in_production(client)
    ends = {name: client.get(f"{BASE}/{name}/promotions").json() for name in names}
    assert {name: (entries[0]["stage"], len(entries)) for name, entries in ends.items()} == {
        name: ("production", 1) if name == left else (None, 2) for name in names
    }


def test_production_is_a_name_for_the_model_that_is_in_it(client: TestClient, add: Add) -> None:
    add("a")
    add("judge", role="reward", method="reward_model")
    missing = client.get(f"{BASE}/@production")
    assert (missing.status_code, missing.json()["code"]) == (404, "nothing_in_production")
    promote(client, "judge", "production")
    assert client.get(f"{BASE}/@production").status_code == 404
    promote(client, "a", "production")
    assert client.get(f"{BASE}/@production").json()["name"] == "a"
    assert client.get(f"{BASE}/@production-reward").json()["name"] == "judge"
    assert client.get(f"{BASE}/@staging").json()["code"] == "unknown_model"
    assert promote(client, "@production", None) == 201
    assert client.get(f"{BASE}/@production").status_code == 404


def test_a_recipe_starts_from_the_model_in_production(client: TestClient, add: Add) -> None:
    add("a")
    recipe = """\
name: ask
inputs: {policy: {type: model}}
stages:
  answers: {run: generate, model: $policy, prompts: ["Hello"]}
"""
    body = {"text": recipe, "set": ["policy=@production"]}
    url = "/api/v1/projects/default/pipelines"
    refused = client.post(url, json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_recipe")
    assert "@production" in refused.text
    promote(client, "a", "production")
    started = client.post(url, json=body)
    assert started.status_code == 201, started.text
    run = client.get(f"/api/v1/projects/default/runs/{started.json()['runs'][0]['id']}").json()
    assert [given["label"] for given in run["inputs"]] == ["a"]


def test_a_promoted_model_is_not_deleted(client: TestClient, add: Add) -> None:
    add("a", "b")
    promote(client, "a", "candidate")
    refused = client.delete(f"{BASE}/a")
    assert (refused.status_code, refused.json()["code"]) == (409, "model_promoted")
    promote(client, "a", "production")
    promote(client, "b", "production")
    assert client.delete(f"{BASE}/a").status_code == 204
    assert in_production(client) == ["b"]


@pytest.mark.parametrize("body", [{}, {"stage": "live"}, {"stage": None, "note": "a\x00"}, {"stage": None, "by": "me"}])
def test_a_promotion_that_is_none_is_refused(client: TestClient, add: Add, body: dict[str, str]) -> None:
    add("a")
    refused = client.post(f"{BASE}/a/promotions", json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")
    assert client.get(f"{BASE}/a/promotions").json() == []


def roll_back(client: TestClient, model: str, **body: str) -> tuple[int, str]:
    answer = client.post(f"{BASE}/{model}/roll-back", json=body)
    document = answer.json()
    return answer.status_code, document.get("name") or document["code"]


def test_a_roll_back_returns_to_the_model_whose_place_was_taken(
    client: TestClient, add: Add, sessions: sessionmaker[Session]
) -> None:
    add("a", "b", "c")
    for name in "abc":
        promote(client, name, "production")
    assert roll_back(client, "c", note="worse on long prompts") == (200, "b")
    assert in_production(client) == ["b"]
    assert client.get(f"{BASE}/b/promotions").json()[0]["note"] == "worse on long prompts"
    # Not to the one that was just rolled back from, but to the one before.
    assert roll_back(client, "b") == (200, "a")
    assert client.get(f"{BASE}/a/promotions").json()[0]["note"] == "rolled back from b"
    assert roll_back(client, "a") == (409, "nothing_to_roll_back")
    assert roll_back(client, "c") == (409, "nothing_to_roll_back")
    assert in_production(client) == ["a"]
    # Promoted again, it has a former one again.
    promote(client, "c", "production")
    assert roll_back(client, "c") == (200, "a")
    with sessions() as session:
        mine = select(AuditEntry.target).where(AuditEntry.action == "model.roll_back").order_by(AuditEntry.id)
        assert session.scalars(mine).all() == ["c", "b", "c"]


def test_rolling_back_twice_at_the_same_moment_goes_back_once(client: TestClient, add: Add) -> None:
    add("a", "b", "c")
    for name in "abc":
        promote(client, name, "production")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: roll_back(client, "c"), range(4)))
    assert sorted(answers) == [(200, "b"), *[(409, "nothing_to_roll_back")] * 3]
    assert in_production(client) == ["b"]
