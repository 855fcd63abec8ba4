"""The models of a pipeline over HTTP."""

from __future__ import annotations

from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from support.rows.evaluation_rows import Evaluated
from support.rows.pipeline_models import pipeline_with_models

URL = "/api/v1/projects/default/pipelines"


def test_a_pipeline_has_the_models_that_its_runs_made_or_reused(
    sessions: sessionmaker[Session], project: Project, client: TestClient
) -> None:
    made = Evaluated(sessions, project)
    pipeline_with_models(made, "one", {"sft": "sft", "reward": "reward", "dt": "policy"}, again="two")
    pipeline_with_models(made, "other", {"sft": "sft"})
    for name in ("one", "two"):
        models = client.get(f"{URL}/{name}/models").raise_for_status().json()
        assert [(model["name"], model["role"]) for model in models] == [
            ("one.sft", "sft"),
            ("one.reward", "reward"),
            ("one.dt", "policy"),
        ]
    assert client.get(f"{URL}/nope/models").status_code == 404
    stranger = client.get(f"{URL}/one/models", headers={"Authorization": "Bearer nobody"})
    assert stranger.status_code == 401
