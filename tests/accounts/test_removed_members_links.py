"""What a removed member left that works without an account."""

from __future__ import annotations

from account_people import People
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from support.rows.evaluation_rows import Evaluated

PROJECT = "/api/v1/projects/default"
LINKS = f"{PROJECT}/evaluations/vicuna/report-links"
MEMBERS = f"{PROJECT}/members"


def test_links_to_reports_that_a_removed_member_made_end_with_them(
    people: People, client: TestClient, sessions: sessionmaker[Session], project: Project
) -> None:
    Evaluated(sessions, project, prompts=2).entrant("sft")
    kept = client.post(LINKS, json={}).json()["path"]
    bob = people.add("bob", "owner")
    by_hand = bob.send("POST", LINKS, {}).json()
    token = bob.send("POST", f"{PROJECT}/tokens", {"name": "ci", "scopes": ["read", "write"]}).json()["token"]
    anybody = people.browser().client
    by_token = anybody.post(LINKS, json={}, headers={"Authorization": f"Bearer {token}"}).json()
    paths = (by_hand["path"], by_token["path"], kept)
    assert [anybody.get(path).status_code for path in paths] == [200, 200, 200]
    assert client.delete(f"{MEMBERS}/bob").status_code == 204
    assert [anybody.get(path).status_code for path in paths] == [404, 404, 200]
    noted = client.get(f"{PROJECT}/audit", params={"action": "member.remove"}).json()["items"][0]
    assert noted["details"]["links_ended"] == sorted([by_hand["id"], by_token["id"]])


def test_an_invitation_ends_when_its_guest_is_removed_from_their_only_project(
    people: People, client: TestClient
) -> None:
    path = client.post(MEMBERS, json={"user": "vera", "role": "viewer"}).json()["sign_in"]["path"]
    assert client.delete(f"{MEMBERS}/vera").status_code == 204
    vera = people.browser()
    vera.client.post(path)
    assert vera.session() is None
