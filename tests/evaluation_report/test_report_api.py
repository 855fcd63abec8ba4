"""The report over HTTP: computed once for each version, for those who may read it."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select, update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import ApiToken, Project
from steerboard.evaluation.report import assembly as reports
from steerboard.evaluation.tables import Evaluation, EvaluationReportRow
from steerboard.platform.database import transaction
from steerboard.platform.security.credentials import secret_hash
from steerboard_contracts.report.evaluation import FIGURES_VERSION
from support.rows.evaluation_rows import Evaluated
from support.rows.listed_runs import Listed, list_run

URL = "/api/v1/projects/default/evaluations"


@pytest.fixture
def made(sessions: sessionmaker[Session], project: Project) -> Evaluated:
    evaluation = Evaluated(sessions, project, prompts=12)
    evaluation.entrant("sft")
    evaluation.entrant("dt")
    evaluation.scores({"sft": [4] * 12, "dt": [6, 7] * 6})
    return evaluation


def test_a_version_is_computed_once(made: Evaluated, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[object] = []
    real = reports.assemble
    monkeypatch.setattr(reports, "assemble", lambda data: computed.append(1) or real(data))
    first = client.get(f"{URL}/vicuna/report").json()
    again = client.get(f"{URL}/{made.id}/report").json()
    assert first == again
    assert len(computed) == 1
    with transaction(made.sessions) as session:
        session.execute(update(Evaluation).values(version=Evaluation.version + 1))
    made.rewards({"sft": [1.0] * 12})
    newer = client.get(f"{URL}/vicuna/report").json()
    assert (newer["version"], len(newer["rewards"]), len(computed)) == (2, 1, 2)


def test_a_report_that_an_older_version_kept_is_computed_anew(made: Evaluated, client: TestClient) -> None:
    client.get(f"{URL}/vicuna/report")
    with transaction(made.sessions) as session:
        session.execute(update(EvaluationReportRow).values(document={"evaluation": "vicuna"}))
    assert client.get(f"{URL}/vicuna/report").json()["judges"][0]["comparison"]["winner"] == "dt"
    # One that can be read, with figures as they were computed then.
    with transaction(made.sessions) as session:
        row = session.scalars(select(EvaluationReportRow)).one()
        assert row.document["figures_version"] == FIGURES_VERSION
        row.document = {**row.document, "judges": [], "figures_version": FIGURES_VERSION - 1}
    assert client.get(f"{URL}/vicuna/report").json()["judges"][0]["comparison"]["winner"] == "dt"


def test_equal_data_give_equal_figures(made: Evaluated) -> None:
    timeless = {"computed_at", "seconds"}
    assert made.report().model_dump(exclude=timeless) == made.report().model_dump(exclude=timeless)


def test_another_baseline_is_a_question_of_the_request(made: Evaluated, client: TestClient) -> None:
    assert client.get(f"{URL}/vicuna/report").json()["baseline"] == "sft"
    turned = client.get(f"{URL}/vicuna/report", params={"baseline": "dt"}).json()
    assert turned["baseline"] == "dt"
    refused = client.get(f"{URL}/vicuna/report", params={"baseline": "nobody"})
    assert (refused.status_code, refused.json()["code"]) == (422, "unknown_entrant")


def test_strangers_and_other_scopes_see_no_report(
    made: Evaluated, client: TestClient, sessions: sessionmaker[Session], project: Project
) -> None:
    with transaction(sessions) as session:
        session.add(
            ApiToken(project_id=project.id, name="rank", token_hash=secret_hash("ranker"), hint="nker", scopes=["rank"])
        )
    answer = client.get(f"{URL}/vicuna/report", headers={"Authorization": "Bearer ranker"})
    assert (answer.status_code, answer.json()["code"]) == (403, "missing_scope")
    assert client.get(f"{URL}/vicuna/report", headers={"Authorization": "Bearer nobody"}).status_code == 401
    missing = client.get(f"{URL}/nope/report")
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_evaluation")


def test_an_evaluation_that_a_recipe_will_make_is_not_just_unknown(
    client: TestClient, sessions: sessionmaker[Session], project: Project
) -> None:
    with transaction(sessions) as session:
        list_run(session, project, Listed("report", "demo-1", kind="evaluate", method=None, state="pending"))
    answer = client.get(f"{URL}/demo-1.report").json()
    assert answer["code"] == "unknown_evaluation"
    assert answer["hint"] == "Its stage begins when what it needs is made; report is as it is."
    assert "lists them" in client.get(f"{URL}/demo-1.other").json()["hint"]
