"""Several attributes in the browser: on rows, in a sample, on answers of the playground and of an evaluation."""

from __future__ import annotations

import re

import pytest
from dashboard_world import World
from page_checks import faults_of, told
from playwright.sync_api import Locator, Page, expect

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
    """Of verbosity before helpfulness."""
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
