"""A preference model in the browser: its figures, the tournament that it judged, and an evaluation that asks it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from dashboard_world import World
from page_checks import faults_of, told, unfold
from playwright.sync_api import Page, expect

# The recipe is in lower case, so that the tokenizer writes the verdicts "A" and "B" alike.
RECIPE = """
name: comparing
inputs:
  sides: {type: dataset, kind: preferences}
stages:
  start:
    {run: base, source: "random:tiny-llama", data: $sides, vocabulary: 300, hidden: 32, layers: 1, heads: 2,
     max_length: 192}
  prefers: {run: train, method: preference_model, model: start, data: $sides, lr: 1.0e-3, batch: 8, max_steps: 3}
  several: {run: generate, model: start, data: $sides, decoding: {temperature: 1.0, n: 3, max_new_tokens: 6}}
  best: {run: select, data: several, judge: prefers, keep: best_and_worst}
"""

ENDED = ("succeeded", "failed", "cancelled")
ENTRANTS = [
    ("greedy", {"temperature": 0.0, "max_new_tokens": 6}),
    ("sampled", {"temperature": 1.0, "max_new_tokens": 6}),
]


def sides() -> list[dict[str, Any]]:
    return [
        {"prompt": f"name a thing, {number}", "chosen": f"a red apple, {number}", "rejected": "no"}
        for number in range(24)
    ]


@pytest.fixture(scope="module")
def compared(world: World) -> dict[str, Any]:
    """The pipeline's stages by name, and an evaluation of two entrants."""
    world.import_rows("sides", "preferences", sides())
    made = world.client.post("pipelines", json={"text": RECIPE, "set": ["sides=sides"]})
    made.raise_for_status()
    name = made.json()["name"]
    world.wait(lambda: world.get(f"pipelines/{name}")["state"] in ENDED, "the pipeline")
    stages = {run["name"]: run for run in world.get(f"pipelines/{name}")["runs"]}
    assert {stage["state"] for stage in stages.values()} == {"succeeded"}, [
        stage["reason"] for stage in stages.values()
    ]
    entrants = [{"model": f"{name}.start", "name": who, "decoding": how} for who, how in ENTRANTS]
    body = {"name": "two-starts", "prompts": {"dataset": "sides", "split": "all", "limit": 4}, "entrants": entrants}
    world.client.post("evaluations", json=body).raise_for_status()
    world.wait(lambda: world.get("evaluations/two-starts")["state"] == "answered", "the answers")
    return {"pipeline": name, **stages}


@pytest.mark.long
def test_the_run_shows_the_tournament_that_decided(page: Page, world: World, compared: dict[str, Any]) -> None:
    page.goto(f"/p/default/runs/{compared['best']['id']}")
    panel = page.get_by_role("tabpanel", name="Selection")
    expect(panel.get_by_role("heading", name="Tournament")).to_be_visible()
    expect(panel).to_contain_text("each answer meets up to 7 others")
    tournament = world.get(f"runs/{compared['best']['id']}/selection")["tournament"]
    expect(panel).to_contain_text(f"{tournament['flips']} of them")
    # A model of two steps goes by the position.
    expect(panel.get_by_role("alert")).to_contain_text("It depends on the position of the answers")
    expect(panel.get_by_role("table", name="Rewards", exact=True)).to_have_count(0)
    faults = faults_of(page, "tournament")
    assert not faults, told(faults)


@pytest.mark.long
def test_its_page_shows_how_far_it_can_be_trusted_and_offers_what_it_is_for(
    page: Page, world: World, compared: dict[str, Any]
) -> None:
    name = f"{compared['pipeline']}.prefers"
    page.goto("/p/default/models")
    row = page.get_by_role("row", name=re.compile(re.escape(name)))
    expect(row).to_contain_text("preference")
    expect(row).to_contain_text("%")
    page.goto(f"/p/default/models/{name}")
    main = page.get_by_role("main")
    expect(main).to_contain_text("Flips with the order")
    expect(main).to_contain_text("Calibration error")
    faults = faults_of(page, "preference-model")
    assert not faults, told(faults)
    page.get_by_role("link", name="Select answers by it").click()
    expect(page.get_by_role("main").get_by_label(re.compile("^judge"))).to_have_value(re.compile(re.escape(name)))


@pytest.mark.long
def test_an_evaluation_asks_it_and_its_report_shows_its_verdicts(
    page: Page, world: World, compared: dict[str, Any]
) -> None:
    page.goto("/p/default/evaluations/two-starts?tab=judges")
    page.get_by_role("button", name="Ask a judge").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("By a preference model").check()
    dialog.get_by_placeholder("Choose a preference model").click()
    page.get_by_role("option", name=f"{compared['pipeline']}.prefers").click()
    expect(dialog.get_by_role("status")).to_have_text("4 pairs of answers will be compared, in both orders.")
    faults = faults_of(page, "preference-judge-form")
    assert not faults, told(faults)
    dialog.get_by_role("button", name="Ask the judge").click()
    card = page.get_by_role("region", name=re.compile("^Judge .*prefers-preference"))
    expect(card).to_contain_text("8 verdicts: 8 parsed")
    card.get_by_role("button", name="Show the verdicts").click()
    expect(card.get_by_role("table")).to_contain_text("greedy vs sampled (sampled first)")
    faults = faults_of(page, "preference-judge")
    assert not faults, told(faults)
    page.goto("/p/default/evaluations/two-starts?tab=report")
    unfold(page.get_by_role("region", name=re.compile("prefers-preference")))
    expect(page.get_by_role("main")).to_contain_text("preference model, two answers at a time in both orders")
    expect(page.get_by_role("main")).to_contain_text("both orders are averaged")
