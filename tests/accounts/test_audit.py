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


def test_owners_see_who_signed_in_and_out_and_who_tried_in_vain(people: People) -> None:
    owner, bob = people.add("ann", "owner"), people.with_password("bob", "a long password")
    stranger = people.browser()
    stranger.sign_in("bob", "wrong")
    stranger.sign_in("my-secret-password", "wrong")
    stranger.sign_in("bob", "a long password")
    bob.send("DELETE", "/api/v1/session")
    page = owner.client.get("/api/v1/system/audit", params={"limit": 5}).json()
    assert [(item["action"], item["actor"], item["target"]) for item in page["items"]] == [
        ("session.end", "user:bob", "user:bob"),
        ("session.create", "user:bob", "user bob"),
        ("session.refuse", "nobody", "an unknown user"),
        ("session.refuse", "nobody", "user bob"),
        ("password.set", "user:bob", "user bob"),
    ]
    assert page["items"][2]["details"] == {"address": "testclient"}
    later = owner.client.get("/api/v1/system/audit", params={"cursor": page["next"]}).json()
    assert [item["target"] for item in later["items"]] == ["user bob", "user ann"]
    refused = owner.client.get("/api/v1/system/audit", params={"action": "session.refuse"}).json()
    assert len(refused["items"]) == 2


def test_the_log_outside_of_projects_is_for_owners(people: People, client: TestClient) -> None:
    for role in ("engineer", "annotator", "viewer"):
        refused = people.add(role, role).client.get("/api/v1/system/audit")
        assert (refused.status_code, refused.json()["code"]) == (403, "missing_scope")
    bound = client.post(f"{PROJECT}/tokens", json={"name": "bound", "scopes": ["admin"]}).json()["token"]
    headers = {"Authorization": f"Bearer {bound}"}
    assert client.get("/api/v1/system/audit", headers=headers).status_code == 403
    assert not [item for item in client.get("/api/v1/system/audit").json()["items"] if item["action"] == "token.create"]
