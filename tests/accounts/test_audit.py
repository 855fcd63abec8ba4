from __future__ import annotations

from account_people import People
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import AuditEntry
from steerboard.platform.database import transaction

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


def test_the_operator_sees_who_signed_in_and_out_and_who_tried_in_vain(people: People, client: TestClient) -> None:
    bob = people.with_password("bob", "a long password")
    stranger = people.browser()
    stranger.sign_in("bob", "wrong")
    stranger.sign_in("my-secret-password", "wrong")
    stranger.sign_in("bob", "a long password")
    bob.send("DELETE", "/api/v1/session")
    page = client.get("/api/v1/system/audit", params={"limit": 5}).json()
    assert [(item["action"], item["actor"], item["target"]) for item in page["items"]] == [
        ("session.end", "user:bob", "user:bob"),
        ("session.create", "user:bob", "user bob"),
        ("session.refuse", "nobody", "an unknown user"),
        ("session.refuse", "nobody", "user bob"),
        ("password.set", "user:bob", "user bob"),
    ]
    assert page["items"][2]["details"] == {"address": "testclient"}
    later = client.get("/api/v1/system/audit", params={"cursor": page["next"]}).json()
    assert [item["target"] for item in later["items"]] == ["user bob"]
    refused = client.get("/api/v1/system/audit", params={"action": "session.refuse"}).json()
    assert len(refused["items"]) == 2


def test_who_signs_in_is_shown_to_the_operator_alone(people: People, client: TestClient) -> None:
    for role in ("owner", "engineer", "annotator", "viewer"):
        someone = people.add(f"a-{role}", role)
        refused = someone.client.get("/api/v1/system/audit")
        assert (refused.status_code, refused.json()["code"]) == (403, "operator_only")
        assert someone.session()["is_operator"] is False
        assert "session." not in someone.client.get(f"{PROJECT}/audit").text
    bound = client.post(f"{PROJECT}/tokens", json={"name": "bound", "scopes": ["admin"]}).json()["token"]
    headers = {"Authorization": f"Bearer {bound}"}
    assert client.get("/api/v1/system/audit", headers=headers).status_code == 403
    operator = people.browser()
    operator.client.post(client.post("/api/v1/sign-in-links").json()["path"], follow_redirects=False)
    assert operator.session()["is_operator"] is True
    signed_in = operator.client.get("/api/v1/system/audit").json()["items"]
    assert {item["target"] for item in signed_in} >= {"user a-owner", "user a-viewer", "user owner"}
    assert not [item for item in signed_in if item["action"] == "token.create"]


def test_no_owner_becomes_the_operator_by_a_new_link(people: People, client: TestClient) -> None:
    """The operator belongs to projects of this owner alone, which makes no difference."""
    ann = people.add("ann", "owner")
    refused = ann.send("POST", f"{PROJECT}/members/owner/sign-in-link")
    assert (refused.status_code, refused.json()["code"]) == (403, "not_their_owner")
    assert client.post(f"{PROJECT}/members/owner/sign-in-link").status_code == 201


def test_rankings_are_listed_when_they_are_asked_for(people: People, sessions: sessionmaker[Session]) -> None:
    owner = people.add("ann", "owner")
    owner.send("POST", f"{PROJECT}/members", {"user": "bob", "role": "annotator"})
    with transaction(sessions) as session:
        told = {"project_id": people.project.id, "actor": "user:bob", "target": "task 1", "detail": {}}
        for action in ["ranking.submit"] * 60 + ["ranking.undo", "ranking_campaign.change"]:
            session.add(AuditEntry(action=action, **told))

    def actions(**params: str) -> list[str]:
        items = owner.client.get(f"{PROJECT}/audit", params={"limit": 500, **params}).json()["items"]
        return [item["action"] for item in items]

    assert actions() == ["ranking_campaign.change", "member.add"]
    assert actions(actor="user:bob") == ["ranking_campaign.change"]
    assert actions(action="ranking") == ["ranking.undo"] + ["ranking.submit"] * 60
    assert actions(action="ranking.undo", actor="user:bob") == ["ranking.undo"]
