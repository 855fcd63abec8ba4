from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import service
from steerboard.accounts.tables import ApiToken, AuditEntry, Project, SignInLink
from steerboard.platform.database import transaction
from support.servers.app_client import AppClient

TOKENS = "/api/v1/projects/default/tokens"


def make(client: TestClient, name: str = "ci", scopes: tuple[str, ...] = ("read",)) -> dict[str, str]:
    answer = client.post(TOKENS, json={"name": name, "scopes": list(scopes)})
    assert answer.status_code == 201, answer.text
    made: dict[str, str] = answer.json()
    return made


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def browser(app: FastAPI, sessions: sessionmaker[Session], project: Project) -> Iterator[TestClient]:
    """Signed in by a link, as a person would."""
    with transaction(sessions) as session:
        _, user = service.ensure_default(session, 0.1)
        code, _ = service.create_sign_in_link(session, user.id)
    with AppClient(app) as client:
        answer = client.post(f"/sign-in/{code}", follow_redirects=False)
        assert answer.status_code == 303
        yield client


def test_a_token_is_shown_once_and_only_its_hash_is_stored(client: TestClient, sessions: sessionmaker[Session]) -> None:
    made = make(client)
    listed = client.get(TOKENS).json()["items"]
    assert [item["name"] for item in listed] == ["ci"]
    assert "token" not in listed[0]
    assert made["token"].startswith(listed[0]["hint"])
    with sessions() as session:
        stored = session.scalar(select(ApiToken.token_hash).where(ApiToken.name == "ci"))
    assert stored is not None
    assert made["token"] not in stored


def test_a_used_token_says_when(client: TestClient) -> None:
    made = make(client)
    assert client.get(TOKENS).json()["items"][0]["last_used_at"] is None
    client.get("/api/v1/projects/default", headers=bearer(made["token"]))
    assert client.get(TOKENS).json()["items"][0]["last_used_at"] is not None


def test_a_revoked_token_stops_working_at_once(client: TestClient) -> None:
    made = make(client)
    assert client.get("/api/v1/projects/default", headers=bearer(made["token"])).status_code == 200
    assert client.delete(f"{TOKENS}/ci").status_code == 200
    refused = client.get("/api/v1/projects/default", headers=bearer(made["token"]))
    assert (refused.status_code, refused.json()["code"]) == (401, "invalid_token")
    assert refused.headers["WWW-Authenticate"] == "Bearer"


def test_an_expired_token_is_refused(client: TestClient, sessions: sessionmaker[Session]) -> None:
    made = client.post(TOKENS, json={"name": "brief", "scopes": ["read"], "expires_in_days": 1}).json()
    assert client.get("/api/v1/projects/default", headers=bearer(made["token"])).status_code == 200
    with transaction(sessions) as session:
        session.execute(update(ApiToken).where(ApiToken.name == "brief").values(expires_at=func.now()))
    assert client.get("/api/v1/projects/default", headers=bearer(made["token"])).status_code == 401


def test_nobody_is_let_in_without_a_token(client: TestClient) -> None:
    client.headers.pop("Authorization")
    for path in ("/api/v1/projects", TOKENS, "/api/v1/projects/default/runs", "/api/v1/projects/default/events"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


def test_a_missing_scope_is_403_and_names_the_scope(client: TestClient) -> None:
    reader = make(client, scopes=("read",))
    refused = client.post(TOKENS, json={"name": "more", "scopes": ["admin"]}, headers=bearer(reader["token"]))
    assert (refused.status_code, refused.json()["code"]) == (403, "missing_scope")
    assert "`admin`" in refused.json()["detail"]


def test_another_projects_things_are_404_like_things_that_are_not(client: TestClient) -> None:
    client.post("/api/v1/projects", json={"name": "other"})
    bound = make(client, scopes=("admin",))
    headers = bearer(bound["token"])
    foreign = client.get("/api/v1/projects/other/tokens", headers=headers)
    absent = client.get("/api/v1/projects/absent/tokens", headers=headers)
    assert (foreign.status_code, absent.status_code) == (404, 404)
    assert foreign.json()["detail"].replace("other", "absent") == absent.json()["detail"]
    assert [item["name"] for item in client.get("/api/v1/projects", headers=headers).json()["items"]] == ["default"]


def test_a_token_of_one_project_makes_no_projects(client: TestClient) -> None:
    bound = make(client, scopes=("admin",))
    refused = client.post("/api/v1/projects", json={"name": "mine"}, headers=bearer(bound["token"]))
    assert refused.status_code == 403


def test_each_change_leaves_one_audit_row_and_a_failed_one_none(
    client: TestClient, sessions: sessionmaker[Session]
) -> None:
    make(client)
    assert client.post(TOKENS, json={"name": "ci", "scopes": ["read"]}).status_code == 409
    client.delete(f"{TOKENS}/ci")
    with sessions() as session:
        rows = session.execute(select(AuditEntry.action, AuditEntry.actor).order_by(AuditEntry.id)).all()
    assert [tuple(row) for row in rows] == [("token.create", "token:test"), ("token.revoke", "token:test")]


def test_a_sign_in_link_works_once(client: TestClient, app: FastAPI) -> None:
    path = client.post("/api/v1/sign-in-links").json()["path"]
    with AppClient(app) as first, AppClient(app) as second:
        signed_in = first.post(path, follow_redirects=False)
        cookie = signed_in.headers["set-cookie"].lower()
        assert signed_in.status_code == 303
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert first.get("/api/v1/projects/default").status_code == 200
        refused = second.post(path, follow_redirects=False)
        assert (refused.status_code, refused.json()["code"]) == (401, "link_used")
        assert second.get("/api/v1/projects/default").status_code == 401


def test_an_old_sign_in_link_is_refused(client: TestClient, sessions: sessionmaker[Session]) -> None:
    path = client.post("/api/v1/sign-in-links").json()["path"]
    with transaction(sessions) as session:
        session.execute(update(SignInLink).values(expires_at=func.now() - dt.timedelta(seconds=1)))
    assert client.post(path, follow_redirects=False).status_code == 401


def test_a_cookie_changes_nothing_without_its_csrf_token(browser: TestClient) -> None:
    body = {"name": "ci", "scopes": ["read"]}
    refused = browser.post(TOKENS, json=body)
    assert (refused.status_code, refused.json()["code"]) == (403, "csrf_failed")
    wrong = browser.post(TOKENS, json=body, headers={"X-CSRF-Token": "guess"})
    assert wrong.status_code == 403
    csrf = browser.get("/api/v1/session").json()["csrf_token"]
    assert browser.post(TOKENS, json=body, headers={"X-CSRF-Token": csrf}).status_code == 201
    assert browser.delete(f"{TOKENS}/ci").status_code == 403


def test_signing_out_ends_the_session_on_the_server(browser: TestClient) -> None:
    csrf = browser.get("/api/v1/session").json()["csrf_token"]
    cookie = dict(browser.cookies)
    assert browser.delete("/api/v1/session", headers={"X-CSRF-Token": csrf}).status_code == 204
    browser.cookies.update(cookie)
    assert browser.get("/api/v1/session").json()["code"] == "session_ended"


def test_a_person_sees_only_projects_they_belong_to(browser: TestClient, sessions: sessionmaker[Session]) -> None:
    with transaction(sessions) as session:
        service.create_project(session, "secret", 0.1)
    assert [item["name"] for item in browser.get("/api/v1/projects").json()["items"]] == ["default"]
    assert browser.get("/api/v1/projects/secret").status_code == 404
