"""Comments on runs, reports and rows: who may write, edit and delete them, and whom they name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import members, service
from steerboard.accounts.tables import Project
from steerboard.marks import comments
from steerboard.marks.tables import ItemComment
from steerboard.notices.messages import message_of
from steerboard.notices.tables import NoticeDelivery, NoticeRule
from steerboard.platform.database import transaction
from support.rows.evaluation_rows import Evaluated
from support.rows.listed_runs import Listed, list_run
from support.servers.app_client import AppClient

PROJECT = "/api/v1/projects/default"
RUN = f"{PROJECT}/marks/run/sft-1/comments"


@pytest.fixture(autouse=True)
def run(sessions: sessionmaker[Session], project: Project) -> str:
    """A run in a project with a rule for mentions, and the members `bob` and `eve.x`."""
    with transaction(sessions) as session:
        for name in ("bob", "eve.x"):
            members.add(session, project, name, "viewer")
        service.create_project(session, "elsewhere", 0.1)
        rule = {"name": "mentions", "channel": "email", "recipients": ["team@example.org"], "active": True}
        session.add(NoticeRule(project_id=project.id, events=["comment.mention"], schedule={}, **rule))
        return str(list_run(session, project, Listed(name="sft-1")))


@pytest.fixture
def engineer(app: FastAPI, client: TestClient) -> Iterator[TestClient]:
    """Another author: a token that may write, and owns nothing."""
    made = client.post(f"{PROJECT}/tokens", json={"name": "ci", "scopes": ["read", "write"]}).json()
    with AppClient(app, headers={"Authorization": f"Bearer {made['token']}"}) as other:
        yield other


def add(client: TestClient, text: str, path: str = RUN, status: int = 201) -> Any:
    answer = client.post(path, json={"text": text})
    assert answer.status_code == status, answer.text
    return answer.json()


def mentions(sessions: sessionmaker[Session]) -> list[Any]:
    """The data of the notices so far, the oldest first."""
    with transaction(sessions) as session:
        rows = session.scalars(select(NoticeDelivery).order_by(NoticeDelivery.id)).all()
        assert {row.event for row in rows} <= {"comment.mention"}
        return [row.payload["data"] for row in rows]


def test_a_comment_is_markdown_that_is_safe_to_show(client: TestClient) -> None:
    made = add(client, "**Good** <script>alert(1)</script> [x](javascript:alert(1))")
    assert "<strong>Good</strong>" in made["html"]
    assert "<script" not in made["html"]
    assert "href=" not in made["html"]
    (listed,) = client.get(RUN).json()
    assert (listed["text"], listed["mine"], listed["edited_at"]) == (made["text"], True, None)
    for text in ("", "  \n", "x" * 10_001):
        add(client, text, status=422)


def test_only_its_author_edits_a_comment_and_owners_delete_any(client: TestClient, engineer: TestClient) -> None:
    mine, theirs = add(client, "mine"), add(engineer, "theirs")
    edited = client.patch(f"{PROJECT}/comments/{mine['id']}", json={"text": "better"}).json()
    assert (edited["text"], edited["edited_at"] is not None) == ("better", True)
    refused = [
        client.patch(f"{PROJECT}/comments/{theirs['id']}", json={"text": "worse"}),
        engineer.patch(f"{PROJECT}/comments/{mine['id']}", json={"text": "worse"}),
        engineer.delete(f"{PROJECT}/comments/{mine['id']}"),
    ]
    assert [(answer.status_code, answer.json()["code"]) for answer in refused] == [(403, "forbidden")] * 3
    seen = [(row["text"], row["mine"], row["deletable"]) for row in engineer.get(RUN).json()]
    assert seen == [("better", False, False), ("theirs", True, True)]
    assert client.delete(f"{PROJECT}/comments/{theirs['id']}").status_code == 204
    assert client.delete(f"{PROJECT}/comments/{theirs['id']}").status_code == 404
    elsewhere = f"/api/v1/projects/elsewhere/comments/{mine['id']}"
    assert client.patch(elsewhere, json={"text": "x"}).status_code == 404


def test_who_only_reads_sees_comments_and_writes_none(app: FastAPI, client: TestClient) -> None:
    made = client.post(f"{PROJECT}/tokens", json={"name": "reader", "scopes": ["read"]}).json()
    comment = add(client, "look")
    with AppClient(app, headers={"Authorization": f"Bearer {made['token']}"}) as reader:
        assert [row["text"] for row in reader.get(RUN).json()] == ["look"]
        path = f"{PROJECT}/comments/{comment['id']}"
        answers = [
            reader.post(RUN, json={"text": "x"}),
            reader.patch(path, json={"text": "x"}),
            reader.delete(path),
        ]
        assert {answer.json()["code"] for answer in answers} == {"missing_scope"}


def test_a_mention_of_members_sends_a_notice(client: TestClient, sessions: sessionmaker[Session], run: str) -> None:
    add(client, "no one, not bob@example.org, not @nobody")
    assert mentions(sessions) == []
    made = add(client, "@bob look at this, with @eve.x. And @bob again")
    (told,) = mentions(sessions)
    assert (told["mentioned"], told["name"], told["id"]) == (["bob", "eve.x"], "run sft-1", made["id"])
    assert told["url"].endswith(f"/p/default/runs/{run}")
    message = message_of({"type": "comment.mention", "data": told})
    assert message.title.endswith("mentions @bob, @eve.x on run sft-1")
    assert message.reason == made["text"]


def test_an_edit_tells_only_those_who_were_not_named_before(
    client: TestClient, sessions: sessionmaker[Session]
) -> None:
    path = f"{PROJECT}/comments/{add(client, '@bob look')['id']}"
    client.patch(path, json={"text": "@bob look again"})
    assert len(mentions(sessions)) == 1
    client.patch(path, json={"text": "@bob and @eve.x look"})
    assert mentions(sessions)[-1]["mentioned"] == ["eve.x"]
    assert len(mentions(sessions)) == 2


def test_a_report_has_comments(client: TestClient, sessions: sessionmaker[Session], project: Project) -> None:
    evaluation = Evaluated(sessions, project, prompts=2)
    add(client, "@bob who wins?", f"{PROJECT}/marks/evaluation/vicuna/comments")
    (told,) = mentions(sessions)
    assert told["url"].endswith(f"/evaluations/{evaluation.id}")


def test_row_comments_are_edited_and_name_people(client: TestClient, sessions: sessionmaker[Session]) -> None:
    rows = client.post(
        f"{PROJECT}/datasets/import",
        data={"name": "tea"},
        files={"file": ("tea.jsonl", '{"prompt": "What is tea?", "response": "A drink."}')},
    )
    assert rows.status_code == 201
    review = f"{PROJECT}/datasets/tea/review"
    made = add(client, "*odd*, @bob", f"{review}/rows/0/comments")
    assert "<em>odd</em>" in made["html"]
    (told,) = mentions(sessions)
    assert (told["name"], told["url"].endswith("?row=0")) == ("row 0 of dataset tea", True)
    edited = client.patch(f"{review}/comments/{made['id']}", json={"text": "fine"})
    assert edited.status_code == 200
    (kept,) = client.get(f"{review}/rows/0").json()["comments"]
    assert (kept["text"], kept["edited_at"] is not None) == ("fine", True)


def test_comments_go_with_their_run_and_are_bounded(
    client: TestClient, sessions: sessionmaker[Session], run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comments, "MOST_COMMENTS", 1)
    add(client, "one")
    assert add(client, "two", status=409)["code"] == "too_many_comments"
    deleted = client.post(f"{PROJECT}/run-changes", json={"action": "delete", "runs": [run]})
    assert deleted.status_code == 200, deleted.text
    with transaction(sessions) as session:
        assert session.scalar(select(func.count()).select_from(ItemComment)) == 0
