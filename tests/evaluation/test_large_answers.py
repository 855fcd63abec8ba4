"""Answers of megabytes: a page of prompts is bounded by their size, and marked."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from support.rows.evaluation_rows import Evaluated

URL = "/api/v1/projects/default/evaluations/vicuna/prompts"
LARGE = 3 << 20


@pytest.fixture
def made(sessions: sessionmaker[Session], project: Project) -> Evaluated:
    """Every prompt has a large answer and a small one."""
    evaluation = Evaluated(sessions, project, prompts=8)
    evaluation.entrant("long", letters=LARGE)
    evaluation.entrant("short")
    return evaluation


def test_a_page_of_large_answers_ends_early_and_all_pages_have_all_of_them(made: Evaluated, client: TestClient) -> None:
    after, seen, sizes = -1, [], []
    while True:
        answer = client.get(URL, params={"after": after, "limit": 20})
        sizes.append(len(answer.content))
        for prompt in answer.json()["items"]:
            seen.append(prompt["position"])
            assert [(response["entrant"], response["cut"]) for response in prompt["responses"]] == [
                ("long", True),
                ("short", False),
            ]
        if answer.json()["next"] is None:
            break
        after = answer.json()["next"]
    assert seen == list(range(8))
    assert len(sizes) > 1
    assert max(sizes) < LARGE / 4


def test_a_large_answer_is_there_as_a_whole_for_who_asks(made: Evaluated, client: TestClient) -> None:
    (prompt,) = client.get(URL, params={"after": 4, "limit": 1, "whole": True}).json()["items"]
    assert prompt["position"] == 5
    assert [len(response["turns"][0]) for response in prompt["responses"]] == [LARGE, 10]
    assert not any(response["cut"] for response in prompt["responses"])
