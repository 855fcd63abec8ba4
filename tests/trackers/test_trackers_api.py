"""Trackers over HTTP."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from sqlalchemy import text
from tracker_world import BASE, PROJECT, TrackerWorld

KEY = "0123456789abcdef0123456789abcdef01234567"
URL = "https://mlflow.example"


def test_a_tracker_is_created_changed_and_deleted(world: TrackerWorld) -> None:
    made = world.tracker("mlflow", url=f"{URL}/", experiment="tuning", secret=KEY)
    assert made["settings"] == {"kind": "mlflow", "url": URL, "experiment": "tuning", "user": None}
    assert (made["has_secret"], made["active"], made["folder"]) == (True, True, None)
    changed = world.client.patch(f"{BASE}/t", json={"active": False, "run_kinds": ["train", "train"]}).json()
    assert (changed["active"], changed["run_kinds"], changed["has_secret"]) == (False, ["train"], True)
    assert world.client.get(BASE).json() == [changed]
    assert world.client.delete(f"{BASE}/{made['id']}").status_code == 204
    assert world.client.get(BASE).json() == []
    entries = world.client.get(f"{PROJECT}/audit").json()["items"]
    assert [entry["action"] for entry in entries] == ["tracker.delete", "tracker.change", "tracker.create"]


def test_a_secret_is_written_and_never_read(world: TrackerWorld) -> None:
    body = {"name": "t", "settings": {"kind": "wandb"}, "secret": KEY}
    made = world.client.post(BASE, json=body, headers={"Idempotency-Key": "one"})
    assert made.status_code == 201
    world.client.patch(f"{BASE}/t", json={"secret": f"{KEY}x"})
    shown = made.text + world.client.get(BASE).text + world.client.get(f"{PROJECT}/audit").text
    assert KEY not in shown
    with world.sessions() as session:
        for table in ("trackers", "idempotency_keys", "audit_log"):
            assert KEY not in str(session.execute(text(f"SELECT * FROM {table}")).all())


def test_a_secret_never_goes_to_another_server_than_it_was_given_for(world: TrackerWorld) -> None:
    world.tracker("mlflow", url=URL, secret=KEY)
    settings = {"kind": "mlflow", "url": "https://other.example"}
    changed = world.client.patch(f"{BASE}/t", json={"settings": settings}).json()
    assert (changed["settings"]["url"], changed["has_secret"]) == ("https://other.example", False)
    again = {"settings": settings | {"experiment": "e"}, "secret": KEY}
    assert world.client.patch(f"{BASE}/t", json=again).json()["has_secret"]
    same = {"settings": settings | {"experiment": "f"}}
    assert world.client.patch(f"{BASE}/t", json=same).json()["has_secret"]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"settings": {"kind": "mlflow", "url": "file:///etc"}}, "bad_url"),
        ({"settings": {"kind": "mlflow", "url": "https://user:pw@mlflow.example"}}, "bad_url"),
        ({"settings": {"kind": "mlflow", "url": "http://127.0.0.2:9"}}, "address_refused"),
        ({"settings": {"kind": "mlflow", "url": "http://169.254.169.254"}}, "address_refused"),
        ({"settings": {"kind": "mlflow", "url": URL, "user": "anna"}}, "tracker_mismatch"),
        ({"settings": {"kind": "wandb"}}, "tracker_mismatch"),
        ({"settings": {"kind": "wandb", "url": "https://wandb.example"}, "secret": KEY}, "address_refused"),
        ({"settings": {"kind": "wandb", "project": "../up"}, "secret": KEY}, "invalid_request"),
        ({"settings": {"kind": "tensorboard"}, "secret": KEY}, "tracker_mismatch"),
        ({"settings": {"kind": "tensorboard", "folder": "/etc"}}, "invalid_request"),
        ({"settings": {"kind": "elsewhere"}}, "invalid_request"),
        ({"settings": {"kind": "tensorboard"}, "name": "../up"}, "invalid_name"),
        ({"settings": {"kind": "tensorboard"}, "name": "t"}, "name_taken"),
        ({"settings": {"kind": "tensorboard"}, "run_kinds": []}, "invalid_request"),
        ({"settings": {"kind": "wandb"}, "secret": "with\nnewline"}, "invalid_request"),
    ],
)
def test_what_cannot_be_used_is_refused(world: TrackerWorld, given: dict[str, Any], code: str) -> None:
    world.tracker("tensorboard")
    answer = world.client.post(BASE, json={"name": "two", **given})
    assert answer.json()["code"] == code, answer.text
    assert KEY not in answer.text


def test_a_wandb_server_that_the_operator_has_named_is_taken(world: TrackerWorld) -> None:
    assert world.tracker("wandb", url="http://127.0.0.1:9090", secret=KEY)["settings"]["url"] == "http://127.0.0.1:9090"


@pytest.mark.parametrize("kind", ["wandb", "tensorboard", "trackio"])
def test_without_its_package_a_tracker_is_refused_with_what_to_install(
    world: TrackerWorld, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    answer = world.client.post(BASE, json={"name": "t", "settings": {"kind": kind}})
    assert (answer.status_code, answer.json()["code"]) == (409, "tracker_missing")
    assert f"pip install 'steerboard[{kind}]'" in answer.json()["hint"]


def test_what_was_reused_or_is_a_part_is_not_exported(world: TrackerWorld) -> None:
    world.tracker("tensorboard")
    world.create("waiting")
    answer = world.client.post(f"{BASE}/t/exports", json={"run": "waiting"})
    assert (answer.status_code, answer.json()["code"]) == (422, "not_exported")
    run = world.done(0)
    world.client.patch(f"{BASE}/t", json={"active": False})
    answer = world.client.post(f"{BASE}/t/exports", json={"run": str(run)})
    assert (answer.status_code, answer.json()["code"]) == (409, "tracker_inactive")


def test_a_deleted_run_is_forgotten_by_its_trackers(world: TrackerWorld) -> None:
    world.tracker("tensorboard")
    run = world.done(0)
    world.client.post(f"{BASE}/t/exports", json={"run": str(run)})
    deleted = world.client.post(f"{PROJECT}/run-changes", json={"action": "delete", "runs": [str(run)]})
    assert deleted.status_code == 200, deleted.text
    with world.sessions() as session:
        assert session.execute(text("SELECT count(*) FROM run_exports")).scalar() == 0
