"""Answers of the playground behind links."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.playground.tables import Comparison, PlaygroundAnswer
from steerboard.sharing.tables import ShareLink
from steerboard_contracts.conditions.condition import Condition
from support.rows.other_token import token_headers

PROJECT = "/api/v1/projects/default"


@pytest.fixture
def comparison(sessions: sessionmaker[Session], project: Project) -> str:
    """Two answers by `steered`, one of them asked for 4.5, that have ended."""
    with transaction(sessions) as session:
        prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is <b>tea</b>?"}]
        made = Comparison(
            project_id=project.id, prompt=prompt, seed=7, created_by="user:zebra", attempt=1, ended_at=func.now()
        )
        session.add(made)
        session.flush()
        for place, text in enumerate(("A drink.\nHot & green.", "")):
            session.add(
                PlaygroundAnswer(
                    comparison_id=made.id,
                    place=place,
                    name="steered",
                    score=Condition.model_validate(4.5) if place == 0 else None,
                    score_text="4.50" if place == 0 else None,
                    decoding={"temperature": 0.7, "top_p": 0.9},
                    seed=7,
                    reuse_key="k",
                    state="succeeded" if place == 0 else "failed",
                    text=text,
                    tokens=6,
                    finished=True,
                    reward=1.25 if place == 0 else None,
                    error=None if place == 0 else {"code": "x", "title": "It broke", "detail": "zebra-detail"},
                    reused=False,
                )
            )
        return str(made.id)


def share(client: TestClient, comparison: str, status: int = 201, **body: Any) -> Any:
    answer = client.post(f"{PROJECT}/playground/comparisons/{comparison}/share-links", json=body)
    assert answer.status_code == status
    return answer.json()


def test_a_link_shows_the_prompt_and_the_answers_with_scores_and_settings_and_nothing_else(
    client: TestClient, anybody: TestClient, comparison: str
) -> None:
    link = share(client, comparison)
    assert (link["kind"], link["title"]) == ("answers", "Answers to: What is <b>tea</b>?")
    page = anybody.get(link["path"])
    assert page.status_code == 200
    for shown in (
        "Be brief.",
        "What is &lt;b&gt;tea&lt;/b&gt;?",
        "steered at 4.50",
        "A drink.\nHot &amp; green.",
        "temperature 0.7, top p 0.9, reward 1.25, 6 tokens",
        "[It broke]",
        "seed 7",
    ):
        assert shown in page.text
    assert "zebra" not in page.text


def test_a_forged_an_expired_and_a_revoked_link_show_nothing(
    client: TestClient, anybody: TestClient, comparison: str, sessions: sessionmaker[Session]
) -> None:
    expired, revoked = share(client, comparison), share(client, comparison)
    with transaction(sessions) as session:
        link = session.get_one(ShareLink, expired["id"])
        link.expires_at = link.created_at - dt.timedelta(seconds=1)
    assert client.delete(f"{PROJECT}/share-links/{revoked['id']}").status_code == 204
    for path in (expired["path"], revoked["path"], f"/shared/{comparison}"):
        answer = anybody.get(path)
        assert (answer.status_code, "A drink" in answer.text) == (404, False)


def test_answers_that_are_not_complete_or_blind_are_not_shared(
    client: TestClient, comparison: str, sessions: sessionmaker[Session]
) -> None:
    with transaction(sessions) as session:
        session.execute(update(Comparison).values(ended_at=None))
    assert share(client, comparison, 409)["code"] == "still_open"
    with transaction(sessions) as session:
        session.execute(update(Comparison).values(ended_at=func.now(), blind=True))
    assert share(client, comparison, 404)["code"] == "not_found"


def test_who_only_asks_models_makes_no_link(
    client: TestClient, comparison: str, sessions: sessionmaker[Session], project: Project
) -> None:
    headers = token_headers(sessions, project.id, "read", "run")
    url = f"{PROJECT}/playground/comparisons/{comparison}/share-links"
    refused = client.post(url, json={}, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (403, "missing_scope")
