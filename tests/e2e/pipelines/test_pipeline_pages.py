"""Pipelines in the browser: launched, watched, cancelled and resumed."""

from __future__ import annotations

import re

import pytest
from dashboard_world import RECIPE, World
from page_fields import choose
from playwright.sync_api import Page, expect

SHORT = """
name: watched
inputs:
  instructions: {type: dataset, kind: instructions}
  preferences: {type: dataset, kind: preferences}
stages:
  base: {run: base, source: "random:tiny-llama", vocabulary: 400, hidden: 32, layers: 1, heads: 2, max_length: 96}
  sft: {run: train, method: sft, model: base, data: $instructions, lr: 1.0e-3, batch: 8, max_steps: 400, epochs: 100}
  reward: {run: train, method: reward_model, model: sft, data: $preferences, lr: 1.0e-3, batch: 8, max_steps: 4}
  report:
    run: evaluate
    entrants: [base, sft]
    rewards: [reward]
    prompts: 6
    decoding: {temperature: 0.0, max_new_tokens: 12}
"""


@pytest.mark.long
def test_a_recipe_is_launched_watched_live_and_survives_a_reload(page: Page, world: World) -> None:
    page.goto("/p/default/launch?recipe=demo")
    page.get_by_role("tab", name="YAML").click()
    yaml = page.get_by_label("The recipe as YAML")
    yaml.fill(RECIPE.replace("lr: 1.0e-3, batch: 8, max_steps: 20}", "learning_rate: 1, max_steps: 20}", 1))
    choose(page, "instructions", "^things")
    choose(page, "preferences", "^pairs")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("learning_rate")
    expect(alert).to_contain_text("line")
    yaml.fill(SHORT)
    expect(alert).to_be_hidden()
    page.get_by_role("switch", name=re.compile("^Reuse")).click()
    page.get_by_role("button", name="Launch", exact=True).click()
    expect(page.get_by_role("heading", name="watched-1")).to_be_visible()
    # The graph follows without a reload, and shows the same after one.
    graph = page.get_by_role("group", name="Stages of the pipeline and what each one needs")
    expect(graph.get_by_role("link", name=re.compile(r"^sft\W*training \d+%"))).to_be_visible()
    page.reload()
    expect(graph.get_by_role("link", name=re.compile(r"^sft\W*(training \d+%|\d)"))).to_be_visible()
    expect(page.get_by_text("No report yet")).to_be_visible()
    expect(page.get_by_role("table", name="Entrants by every source")).to_be_visible()
    # The same answers can be judged further.
    expect(page.get_by_role("link", name="watched-1.report")).to_be_visible()


def test_a_finished_recipe_says_who_won_and_what_the_paper_claims(page: Page, world: World, pipeline: str) -> None:
    page.goto(f"/p/default/pipelines/{pipeline}")
    # In the words of the command line.
    summary = world.get(f"pipelines/{pipeline}/report")["summary"]
    expect(page.get_by_role("heading", name=summary["verdict"], exact=True)).to_be_visible()
    claims = page.get_by_role("list", name="What the paper claims, checked here").get_by_role("listitem")
    assert claims.all_inner_texts() == [("Met: " if c["met"] else "Not met: ") + c["text"] for c in summary["checks"]]
    assert summary["checks"]
    table = page.get_by_role("table", name="Entrants by every source")
    for score in ("−5.0", "0.0", "5.0"):
        expect(
            table.get_by_role("row").filter(has_text="decision_transformer").filter(has_text=score).first
        ).to_be_visible()


def test_a_cancelled_pipeline_goes_on_by_one_click(page: Page, world: World) -> None:
    part = "{run: mix, parts: [{data: $things, share: 1.0}], size: 5}"
    inputs = "inputs: {things: {type: dataset, kind: instructions}}"
    text = f"name: halted\n{inputs}\nstages:\n  one: {part}\n  two: {part}\n"
    answer = world.client.post("pipelines", json={"text": text, "set": ["things=things"], "reuse": False})
    answer.raise_for_status()
    name = answer.json()["name"]
    world.client.post(f"pipelines/{name}/cancel").raise_for_status()
    world.wait(lambda: world.get(f"pipelines/{name}")["state"] == "cancelled", name)
    page.goto(f"/p/default/pipelines/{name}")
    page.get_by_role("button", name=re.compile(r"Resume \d stage")).click()
    expect(page.locator(".state-badge").first).to_have_text("succeeded")
    expect(page.get_by_role("button", name=re.compile("Resume"))).to_have_count(0)
