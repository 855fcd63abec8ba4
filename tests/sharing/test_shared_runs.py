"""Comparisons of runs behind links: frozen, for everyone who has one, until they expire or are revoked."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import AuditEntry, Project
from steerboard.platform.database import transaction
from steerboard.runs.tables import Metric, Run
from steerboard.sharing import links
from steerboard.sharing.tables import ShareLink
from support.rows.listed_runs import Listed, list_run
from support.rows.other_token import token_headers

LINKS = "/api/v1/projects/default/share-links"
SLOW = {"lr": 0.001, "epochs": 3, "note": "<script>alert(1)</script>"}
FAST = {"lr": 0.01, "epochs": 3, "note": "zebra-note"}


@pytest.fixture(autouse=True)
def runs(sessions: sessionmaker[Session], project: Project) -> None:
    with transaction(sessions) as session:
        for name, settings, loss in (("slow", SLOW, 0.75), ("fast", FAST, 0.5)):
            results = {"eval_loss": loss, "zebra": "no figure"}
            given = {"settings": settings, "results": results, "by": "user:zebra-person", "notes": "zebra-notes"}
            run = list_run(session, project, Listed(name=name, device_seconds=90.0, **given))
            steps = ((1, 0.9), (2, loss))
            points = [(metric, step, value) for metric in ("loss", "odd") for step, value in steps]
            for metric, step, value in (*points, ("loss", 3, float("nan"))):
                session.add(Metric(run_id=run, name=metric, step=step, value=value, attempt=1))


def share(client: TestClient, status: int = 201, **body: Any) -> Any:
    answer = client.post(f"{LINKS}/runs", json={"runs": ["slow", "fast"], **body})
    assert answer.status_code == status
    return answer.json()


def test_a_link_shows_results_differences_and_curves_and_nothing_else(client: TestClient, anybody: TestClient) -> None:
    page = anybody.get(share(client)["path"])
    assert page.status_code == 200
    for shown in ("slow / fast", "eval loss", "0.75", "0.5", "0.001", "0.01", ">loss</h2>", '<path class="l1"'):
        assert shown in page.text
    assert "&lt;script&gt;" in page.text
    for hidden in ("<script", "epochs", "zebra-person", "zebra-notes", "no figure", ">odd</h2>", "nan", "/p/default"):
        assert hidden not in page.text
    assert page.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "set-cookie" not in page.headers


def test_the_page_has_the_curves_that_were_chosen(client: TestClient, anybody: TestClient) -> None:
    page = anybody.get(share(client, metrics=["odd"])["path"]).text
    assert ">odd</h2>" in page
    assert ">loss</h2>" not in page


def test_a_shared_comparison_stays_as_it_was(
    client: TestClient, anybody: TestClient, sessions: sessionmaker[Session]
) -> None:
    path = share(client)["path"]
    before = anybody.get(path).text
    with transaction(sessions) as session:
        session.execute(update(Run).values(name="renamed", summary={"eval_loss": 9.0}))
        session.execute(delete(Metric))
    assert anybody.get(path).text == before


def test_a_forged_an_expired_and_a_revoked_link_answer_alike(
    client: TestClient, anybody: TestClient, sessions: sessionmaker[Session]
) -> None:
    expired, revoked, kept = (share(client) for _ in range(3))
    with transaction(sessions) as session:
        link = session.get_one(ShareLink, expired["id"])
        link.expires_at = link.created_at - dt.timedelta(seconds=1)
    assert client.delete(f"{LINKS}/{revoked['id']}").status_code == 204
    assert client.delete(f"{LINKS}/{revoked['id']}").status_code == 204
    forged = kept["path"][:-1] + ("A" if kept["path"][-1] != "A" else "B")
    answers = [anybody.get(path) for path in (forged, expired["path"], revoked["path"])]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.content for answer in answers}) == 1
    assert [link["id"] for link in client.get(LINKS, params={"kind": "runs"}).json()] == [kept["id"]]
    assert anybody.get(kept["path"]).status_code == 200


def test_only_who_may_write_makes_and_revokes_links(
    client: TestClient, sessions: sessionmaker[Session], project: Project
) -> None:
    link = share(client)
    assert "path" not in client.get(LINKS).json()[0]
    reader = token_headers(sessions, project.id, "read", "run")
    for answer in (
        client.post(f"{LINKS}/runs", json={"runs": ["slow"]}, headers=reader),
        client.delete(f"{LINKS}/{link['id']}", headers=reader),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "missing_scope")
    with transaction(sessions) as session:
        noted = session.scalars(select(AuditEntry).where(AuditEntry.action == "share_link.create")).one()
        assert noted.detail["title"] == "slow / fast"


def test_what_cannot_be_shared_is_refused(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert share(client, 404, runs=["slow", "nothing"])["code"] == "not_found"
    for wrong in ({"runs": []}, {"runs": ["slow"] * 13}, {"expires_in_days": 0}, {"expires_in_days": 366}):
        share(client, 422, **wrong)
    monkeypatch.setattr(links, "MOST_FROZEN", 1)
    share(client)
    assert share(client, 409)["code"] == "too_many_links"
    missing = client.delete(f"{LINKS}/00000000-0000-0000-0000-000000000000")
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_link")


def test_a_link_of_another_project_is_neither_listed_nor_revoked(
    client: TestClient, anybody: TestClient, sessions: sessionmaker[Session]
) -> None:
    link = share(client)
    assert client.post("/api/v1/projects", json={"name": "other"}).status_code == 201
    other = LINKS.replace("default", "other")
    assert client.get(other).json() == []
    assert client.delete(f"{other}/{link['id']}").status_code == 404
    assert anybody.get(link["path"]).status_code == 200
    with transaction(sessions) as session:
        assert session.scalar(select(func.count()).select_from(ShareLink).where(ShareLink.revoked_at.is_(None))) == 1
