"""Webhooks over HTTP."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from notice_world import BASE, NoticeWorld
from sqlalchemy import text

from support.servers.other_server import OtherServer

DOCS = Path(__file__).parents[2] / "docs" / "notices.md"
URL = "https://ci.example/hook?token=of-the-receiver"


def test_a_webhook_is_created_changed_and_deleted(world: NoticeWorld, other: OtherServer) -> None:
    made = world.hook(URL, "run.failed", "run.failed", "pipeline.failed")
    assert made["events"] == ["run.failed", "pipeline.failed"]
    assert made["secret"].startswith("whsec_")
    changed = world.client.patch(f"{BASE}/ci", json={"url": other.url, "events": ["run.failed"]}).json()
    assert (changed["url"], changed["events"], changed["active"]) == (other.url, ["run.failed"], True)
    tested = world.client.post(f"{BASE}/ci/test").json()
    assert (tested["event"], tested["state"], tested["last_status"]) == ("test", "delivered", 200)
    (listed,) = world.client.get(BASE).json()
    assert listed == {**changed, "last_delivery": tested}
    assert world.client.delete(f"{BASE}/{made['id']}").status_code == 204
    assert world.client.get(BASE).json() == []
    entries = world.client.get("/api/v1/projects/default/audit").json()["items"]
    assert [entry["action"] for entry in entries] == [
        "notice_rule.delete",
        "notice_rule.test",
        "notice_rule.change",
        "notice_rule.create",
    ]
    assert "of-the-receiver" not in str(entries)


def test_the_secret_is_shown_once_and_lies_nowhere_in_clear(world: NoticeWorld) -> None:
    body = {"name": "ci", "url": URL, "events": ["run.failed"]}
    secret = world.client.post(BASE, json=body, headers={"Idempotency-Key": "one"}).json()["secret"]
    assert "secret" not in world.client.get(BASE).json()[0]
    with world.sessions() as session:
        for table in ("notice_rules", "idempotency_keys", "audit_log"):
            assert secret not in str(session.execute(text(f"SELECT * FROM {table}")).all())
    again = world.client.post(BASE, json=body, headers={"Idempotency-Key": "one"})
    assert (again.headers["Idempotency-Replayed"], again.json()["secret"]) == ("true", secret)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"url": "ftp://ci.example/"}, "bad_url"),
        ({"url": "http://127.0.0.2:9/"}, "address_refused"),
        ({"url": "https://user:pw@ci.example/"}, "bad_url"),
        ({"name": "a b"}, "invalid_name"),
        ({"events": []}, "invalid_request"),
        ({"events": ["run.started"]}, "invalid_request"),
        ({"name": "ci"}, "name_taken"),
    ],
)
def test_what_cannot_be_used_is_refused(world: NoticeWorld, given: dict[str, Any], code: str) -> None:
    world.hook(URL)
    answer = world.client.post(BASE, json={"name": "two", "url": URL, "events": ["run.failed"], **given})
    assert answer.json()["code"] == code


def test_deliveries_come_page_by_page(world: NoticeWorld) -> None:
    world.hook(URL)
    for name in "abc":
        world.run(name)
        world.work()
    first = world.client.get(f"{BASE}/ci/deliveries", params={"limit": 2}).json()
    rest = world.client.get(f"{BASE}/ci/deliveries", params={"limit": 2, "cursor": first["next"]}).json()
    names = [each["payload"]["data"]["name"] for page in (first, rest) for each in page["items"]]
    assert (names, rest["next"]) == (["c", "b", "a"], None)
    assert world.client.get(f"{BASE}/ci/deliveries", params={"state": "failed"}).json()["items"] == []


def test_only_owners_and_nobody_of_another_project(world: NoticeWorld) -> None:
    world.hook(URL)
    delivery = "00000000-0000-0000-0000-000000000000"
    assert world.client.post(f"{BASE}/ci/deliveries/{delivery}/redeliver").status_code == 404
    body = {"name": "w", "scopes": ["read", "write", "run"]}
    token = world.client.post("/api/v1/projects/default/tokens", json=body).json()["token"]
    writer = {"Authorization": f"Bearer {token}"}
    assert world.client.get(BASE, headers=writer).status_code == 403
    assert world.client.post(f"{BASE}/ci/test", headers=writer).status_code == 403
    world.client.post("/api/v1/projects", json={"name": "second"})
    for path in ("ci", "ci/deliveries"):
        assert world.client.get(BASE.replace("default", "second") + f"/{path}").status_code in (404, 405)
    assert world.client.delete(BASE.replace("default", "second") + "/ci").status_code == 404


def test_the_code_of_the_documentation_checks_a_real_delivery(world: NoticeWorld, other: OtherServer) -> None:
    secret = world.hook(other.url)["secret"]
    world.client.post(f"{BASE}/ci/test")
    (seen,) = other.seen
    (code,) = re.findall(r"^```python\n(.*?)^```$", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["verified"](secret, seen.headers, seen.body)
    assert not names["verified"](secret, seen.headers, seen.body + b" ")
    assert not names["verified"](secret, {**seen.headers, "webhook-timestamp": "1"}, seen.body)
    assert not names["verified"]("whsec_" + "A" * 32, seen.headers, seen.body)
