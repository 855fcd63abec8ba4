"""Several attributes in the browser: on rows, in a sample, on answers of the playground and of an evaluation."""

from __future__ import annotations

import re

import pytest
from dashboard_world import World
from page_checks import faults_of, told
from playwright.sync_api import Locator, Page, expect
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.evaluation.tables import PromptSet
from steerboard.platform.database import transaction
from support.rows.evaluation_rows import Evaluated

COLORS = ("red", "green", "blue", "yellow", "grey")
RECIPE = """
name: attributed
inputs:
  graded: {type: dataset, kind: labelled}
  pairs: {type: dataset, kind: preferences}
stages:
  base: {run: base, source: "random:tiny-llama", vocabulary: 400, hidden: 32, layers: 1, heads: 2, max_length: 96}
  reward: {run: train, method: reward_model, model: base, data: $pairs, lr: 1.0e-3, batch: 8, max_steps: 2}
  dt:
    run: train
    method: decision_transformer
    model: base
    data: $graded
    lr: 1.0e-3
    batch: 8
    max_steps: 4
    attributes: [verbosity, helpfulness]
    default_attributes: "verbosity:2,helpfulness:4"
"""


def badges(inside: Page | Locator, label: str | re.Pattern[str]) -> Locator:
    return inside.get_by_role("list", name=label).get_by_role("listitem")


@pytest.fixture(scope="module")
def attributed(world: World) -> None:
    """Rows of two attributes; every third one has no verbosity."""
    rows = [
        {
            "prompt": f"Name a thing that is {color} {number}.",
            "response": f"A {color} thing.",
            "source": "people",
            "attributes": {"verbosity": number % 3, "helpfulness": 1 + number % 4}
            if number % 3
            else {"helpfulness": 1 + number % 4},
        }
        for number in range(8)
        for color in COLORS
    ]
    world.import_rows("attributed", "labelled", rows)


@pytest.fixture(scope="module")
def policy(world: World, attributed: None) -> str:
    """A policy that was asked for verbosity before helpfulness."""
    body = {"text": RECIPE, "set": ["graded=attributed", "pairs=pairs"]}
    answer = world.client.post("pipelines", json=body)
    answer.raise_for_status()
    name = str(answer.json()["name"])
    world.wait(lambda: world.get(f"pipelines/{name}")["state"] in ("succeeded", "failed"), name)
    assert world.get(f"pipelines/{name}")["state"] == "succeeded"
    return f"{name}.dt"


@pytest.mark.long
@pytest.mark.usefixtures("attributed")
def test_rows_and_a_sample_show_their_attributes_by_name_without_those_that_are_missing(page: Page) -> None:
    page.goto("/p/default/datasets/attributed")
    table = page.get_by_role("table", name="Rows")
    expect(table.get_by_role("columnheader", name="Attributes")).to_be_visible()
    expect(badges(table, "Attributes of row 5")).to_have_text(["helpfulness 2", "verbosity 1"])
    expect(badges(table, "Attributes of row 0")).to_have_text(["helpfulness 1"])
    faults = faults_of(page, "attribute rows")
    table.get_by_role("link", name="Row 5", exact=True).click()
    drawer = page.get_by_role("dialog")
    expect(badges(drawer, "Attributes")).to_have_text(["helpfulness 2", "verbosity 1"])
    faults |= faults_of(page, "attribute sample")
    assert not faults, told(faults)


@pytest.mark.long
def test_a_policy_of_several_attributes_has_a_slider_for_each_and_answers_show_what_was_asked(
    page: Page, policy: str
) -> None:
    page.goto(f"/p/default/playground?model={policy}")
    column = page.get_by_role("article").first
    expect(column.get_by_role("slider")).to_have_count(2)
    page.get_by_label("Prompt", exact=True).fill("Name a thing that is red 1.")
    page.keyboard.press("Control+Enter")
    # In the order of the model, not of the names.
    expect(badges(column, "Asked for")).to_have_text(["verbosity 2", "helpfulness 4"])
    before = page.url
    column.get_by_role("slider", name="helpfulness").focus()
    page.keyboard.press("Home")
    page.wait_for_url(lambda url: url != before)
    expect(badges(column, "Asked for")).to_have_text(["verbosity 2", "helpfulness 1"])
    # One that is left out is not asked for.
    column.get_by_role("checkbox", name="verbosity").uncheck()
    page.get_by_role("button", name="Send").click()
    expect(badges(column, "Asked for")).to_have_text(["helpfulness 1"])
    expect(column.locator("[aria-busy=true]")).to_have_count(0)
    faults = faults_of(page, "attribute playground")
    assert not faults, told(faults)


@pytest.mark.long
def test_answers_of_an_evaluation_show_what_their_entrant_was_asked_for(page: Page, world: World, policy: str) -> None:
    body = {
        "name": "attributed",
        "prompts": {"dataset": "attributed", "split": "train", "limit": 2},
        "entrants": [
            {"model": policy, "name": "both", "score": "verbosity:1,helpfulness:3", "decoding": "greedy"},
            {"model": policy, "name": "neither", "score": "", "decoding": "greedy"},
        ],
    }
    world.client.post("evaluations", json=body).raise_for_status()
    world.wait(lambda: not world.get("evaluations/attributed")["unfinished"], "the evaluation")
    page.goto("/p/default/evaluations/attributed?tab=answers")
    both, neither = (page.get_by_role("region", name=f"Answer of {name}").first for name in ("both", "neither"))
    expect(badges(both, "Asked for")).to_have_text(["verbosity 1", "helpfulness 3"])
    expect(neither).to_contain_text("asked for nothing")
    faults = faults_of(page, "attribute answers")
    assert not faults, told(faults)


def test_an_entrant_is_asked_for_attributes_in_the_form_and_enters_once_for_each_condition(
    rows_page: Page, sessions: sessionmaker[Session], project: Project
) -> None:
    graded = [{"name": name, "low": 0, "high": 4, "step": 1, "decimals": 0} for name in ("verbosity", "helpfulness")]
    other = Evaluated(sessions, project, name="other", prompts=1)
    other.model("graded", method="decision_transformer", info={"condition": {"attributes": graded}})
    other.model("plain", role="sft", method="sft")
    asked = [
        {"question_id": str(at), "messages": [{"role": "user", "content": f"Name thing {at}."}], "follow_ups": []}
        for at in range(2)
    ]
    with transaction(sessions) as session:
        common = {"format": "own", "created_by": "ann"}
        session.add(PromptSet(project_id=project.id, name="two", prompts=asked, **common))
    page = rows_page
    page.goto("/p/default/evaluations/new")
    page.get_by_role("textbox", name="Name", exact=True).fill("conditioned")
    page.get_by_role("combobox", name="Prompt set").click()
    page.get_by_role("option", name=re.compile("^two ")).click()
    entrant = page.get_by_role("group", name="Entrant not chosen yet")
    entrant.get_by_role("combobox", name="Who answers").click()
    page.get_by_role("option", name=re.compile("^plain ")).click()
    # A policy that takes no attributes is not asked for any.
    entrant = page.get_by_role("group", name="Entrant plain")
    expect(entrant.get_by_label("Requested attributes")).to_have_count(0)
    entrant.get_by_role("combobox", name="Who answers").click()
    page.get_by_role("option", name=re.compile("^graded ")).click()
    entrant = page.get_by_role("group", name="Entrant graded")
    attributes = entrant.get_by_label("Requested attributes")
    expect(attributes).to_have_attribute("placeholder", "verbosity:4,helpfulness:4")
    attributes.fill("honesty:3")
    attributes.press("Enter")
    page.get_by_role("button", name="Start the evaluation").click()
    expect(page.get_by_role("alert")).to_contain_text("asked for honesty, which this policy does not know")
    attributes.press("Backspace")
    # In any order, and one condition without the other attribute.
    attributes.fill("helpfulness:3,verbosity:1")
    attributes.press("Enter")
    attributes.fill("helpfulness:4")
    attributes.press("Enter")
    expect(page.get_by_text("2 prompts × 2 entrants: 4 answers will be made.")).to_be_visible()
    faults = faults_of(page, "attribute form")
    page.get_by_role("button", name="Start the evaluation").click()
    expect(page.get_by_role("heading", name="conditioned")).to_be_visible()
    entrants = page.request.get("/api/v1/projects/default/evaluations/conditioned").json()["entrants"]
    assert [entrant["score"] for entrant in entrants] == ["verbosity:1,helpfulness:3", "helpfulness:4"]
    assert not faults, told(faults)
