"""A model in the browser: its lineage leads back to those whose word it learned from."""

from __future__ import annotations

import re
import uuid
from typing import Any

from page_checks import faults_of, told
from playwright.sync_api import Locator, Page, expect
from sqlalchemy import update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.registry.tables import Model
from support.rows.evaluation_rows import Evaluated

API = "/api/v1/projects/default"
PROMPTS = 4


def post(page: Page, path: str, body: dict[str, Any]) -> Any:
    csrf = page.request.get("/api/v1/session").json()["csrf_token"]
    answer = page.request.post(f"{API}/{path}", headers={"X-CSRF-Token": csrf}, data=body)
    assert answer.status == 201, answer.text()
    return answer.json()


def learned_from_an_evaluation(page: Page, made: Evaluated) -> tuple[str, str]:
    """The pairs of a campaign and a judge, and the run of a reward model that learned from them."""
    made.entrant("sft", letters=10)
    made.entrant("dt", letters=20)
    made.campaign({"rosa": {at: {"sft": 2, "dt": 1} for at in range(PROMPTS)}}, name="readers")
    made.scores({"sft": [5] * PROMPTS, "dt": [9] * PROMPTS}, name="referee")
    made.model("start", role="sft")
    pairs = post(page, f"evaluations/{made.name}/preferences", {"split": "train"})
    config = {"run": "train", "method": "reward_model"}
    run = post(page, "runs", {"name": "teach", "config": config, "inputs": {"model": "start", "data": pairs["name"]}})
    aligned = made.model("aligned", role="reward")
    with transaction(made.sessions) as session:
        # As its worker would register it.
        session.execute(update(Model).where(Model.id == aligned.id).values(run_id=uuid.UUID(run["id"])))
    return pairs["name"], run["name"]


def test_the_lineage_of_a_model_leads_back_to_the_people_and_the_judge_of_an_evaluation(
    rows_page: Page, sessions: sessionmaker[Session], project: Project
) -> None:
    page = rows_page
    pairs, run = learned_from_an_evaluation(page, Evaluated(sessions, project, name="quokka", prompts=PROMPTS))
    page.goto("/p/default/models/aligned")
    graph = page.get_by_role("group", name="From data to this model, and what was made from it")

    def node(name: str, detail: str) -> Locator:
        return graph.get_by_role("link", name=re.compile(rf"^{re.escape(name)}\s*{detail}$"))

    evaluation, people, judge = (
        node("quokka", "evaluation · answers"),
        node("readers", "campaign · .*"),
        node("referee", "judge · gpt"),
    )
    dataset, trained, model = node(pairs, "dataset · .*"), node(run, "run · .*"), node("aligned", "model · reward")
    columns = [evaluation, people, dataset, trained, model]
    places = [left(column) for column in columns]
    assert places == sorted(set(places))
    assert left(judge) == left(people)
    # Evaluation to both, both to the pairs, pairs and start model to the run, run to the model.
    expect(graph.locator(".graph-edge")).to_have_count(7)
    colors = [node.locator("rect").nth(1).get_attribute("fill") for node in (*columns, judge)]
    assert colors[1] == colors[5]
    assert len(set(colors)) == 5
    faults = faults_of(page, "lineage")

    for link, address, shows in (
        (evaluation, r"/evaluations/[^?]+$", page.get_by_role("heading", name="quokka")),
        (people, r"/evaluations/.*\?tab=people", page.get_by_role("region", name="Campaign readers")),
        (judge, r"/evaluations/.*\?tab=judges", page.get_by_role("region", name="Judge referee")),
        (dataset, "/datasets/", page.get_by_role("heading", name=pairs)),
        (trained, "/runs/", page.get_by_role("heading", name=run)),
    ):
        link.click()
        expect(shows).to_be_visible()
        expect(page).to_have_url(re.compile(address))
        page.go_back()
    assert not faults, told(faults)


def left(node: Locator) -> float:
    box = node.bounding_box()
    assert box is not None
    return box["x"]
