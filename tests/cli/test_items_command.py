"""`steerboard evaluations items`, and all models of a pipeline as entrants."""

from __future__ import annotations

import json

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.evaluation.tables import PromptSet
from steerboard.platform.database import transaction
from support.processes.command_line import Steerboard, steerboard, url
from support.rows.evaluation_rows import Evaluated
from support.rows.pipeline_models import pipeline_with_models

__all__ = ["steerboard", "url"]
PROMPTS = 5


@pytest.fixture
def made(sessions: sessionmaker[Session], project: Project) -> Evaluated:
    evaluation = Evaluated(sessions, project, name="weekly", prompts=PROMPTS)
    for name in ("sft", "dt"):
        evaluation.entrant(name)
    evaluation.scores({"sft": [5, 5, 5, 5, 5], "dt": [4, 5, 4, 6, 4]}, name="gpt")
    return evaluation


def test_losses_are_listed_and_page_after_page(
    made: Evaluated, steerboard: Steerboard, url: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steerboard.cli.evaluation.items._PAGE", 2)
    losses = ("evaluations", "items", "weekly", "--a", "dt", "--b", "sft", "--source", "judge:gpt", "--outcome", "loss")
    done = steerboard(url, token, *losses)
    assert [line.split("\t") for line in done.stdout.splitlines()] == [
        [str(at), f"q{at}", "", "sft", "4.00 / 5.00", "10 / 10", f"Question {at}?"] for at in (0, 2, 4)
    ]
    by_score = json.loads(steerboard(url, token, *losses[:-2], "--sort", "-difference", "--json").stdout)
    assert [item["position"] for item in by_score] == [3, 1, 0, 2, 4]
    listed = json.loads(steerboard(url, token, *losses, "--limit", "2", "--json").stdout)
    assert [item["position"] for item in listed] == [0, 2]
    refused = steerboard(url, token, "evaluations", "items", "weekly", "--outcome", "loss")
    assert refused.returncode != 0
    assert "a loss needs an entrant" in refused.stderr
    nothing = steerboard(url, token, *losses[:-1], "flip")
    assert "No prompt of the evaluation fits." in nothing.stderr


def test_a_pipelines_models_enter_an_evaluation(
    made: Evaluated, steerboard: Steerboard, url: str, token: str, client: TestClient
) -> None:
    pipeline_with_models(made, "offline-1", {"sft": "sft", "reward": "reward", "dt": "policy"})
    asked = {"question_id": "1", "category": None, "messages": [{"role": "user", "content": "Hi?"}], "follow_ups": []}
    with transaction(made.sessions) as session:
        prompts = [{**asked, "reference": None}]
        session.add(
            PromptSet(project_id=made.project.id, name="mine", format="own", prompts=prompts, created_by="test")
        )
    done = steerboard(url, token, *["evaluations", "create", "next", "--prompt-set", "mine", "--pipeline", "offline-1"])
    assert done.returncode == 0, done.stderr
    entrants = client.get("/api/v1/projects/default/evaluations/next").json()["entrants"]
    assert [entrant["name"] for entrant in entrants] == ["offline-1.sft", "offline-1.dt"]
