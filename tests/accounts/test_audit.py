from __future__ import annotations

from account_people import People
from fastapi.testclient import TestClient

PROJECT = "/api/v1/projects/default"


def test_the_audit_log_tells_who_changed_what_newest_first(people: People) -> None:
    owner = people.add("ann", "owner")
    owner.send("POST", f"{PROJECT}/members", {"user": "bob", "role": "viewer"})
    owner.send("PATCH", f"{PROJECT}/members/bob", {"role": "engineer"})
    owner.send("DELETE", f"{PROJECT}/members/bob")
    items = owner.client.get(f"{PROJECT}/audit").json()["items"]
    assert [(item["actor"], item["action"], item["target"], item["details"]) for item in items] == [
        ("user:ann", "member.remove", "user bob", {"role": "engineer"}),
        ("user:ann", "member.change", "user bob", {"from": "viewer", "to": "engineer"}),
        ("user:ann", "member.add", "user bob", {"role": "viewer", "new_account": True}),
    ]
    assert set(items[0]) == {"id", "at", "actor", "action", "target", "details"}


def test_the_audit_log_is_filtered_and_read_page_by_page(people: People, client: TestClient) -> None:
    owner = people.add("ann", "owner")
    for number in range(5):
        owner.send("POST", f"{PROJECT}/tokens", {"name": f"t{number}", "scopes": ["read"]})
    client.post(f"{PROJECT}/tokens", json={"name": "other", "scopes": ["read"]})
    owner.send("POST", f"{PROJECT}/members", {"user": "bob", "role": "viewer"})

    def targets(**params: str | int) -> list[str]:
        seen: list[str] = []
        while True:
            page = owner.client.get(f"{PROJECT}/audit", params=params).json()
            seen += [item["target"].split()[1] for item in page["items"]]
            if page["next"] is None:
                return seen
            params["cursor"] = page["next"]

    assert targets(limit=2) == ["bob", "other", "t4", "t3", "t2", "t1", "t0"]
    assert targets(limit=2, action="token.create") == ["other", "t4", "t3", "t2", "t1", "t0"]
    assert targets(action="member") == ["bob"]
    assert targets(action="mem") == []
    assert targets(actor="token:test") == ["other"]
    assert targets(limit=3, actor="user:ann", action="token") == ["t4", "t3", "t2", "t1", "t0"]
    assert owner.client.get(f"{PROJECT}/audit", params={"actor": "a\x00"}).json()["code"] == "invalid_request"


def test_another_projects_changes_are_not_shown(people: People, client: TestClient) -> None:
    client.post("/api/v1/projects", json={"name": "other"})
    client.post("/api/v1/projects/other/tokens", json={"name": "theirs", "scopes": ["read"]})
    assert people.add("ann", "owner").client.get(f"{PROJECT}/audit").json()["items"] == []
