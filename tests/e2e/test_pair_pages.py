"""The pairs of a run in the browser: margins at a step, a range of them to read and mark, a new version."""

from __future__ import annotations

import re

from dashboard_world import World, preferences
from page_checks import faults_of, told
from playwright.sync_api import Page, expect

RECIPE = """
name: inspected
inputs:
  instructions: {type: dataset, kind: instructions}
  preferences: {type: dataset, kind: preferences}
stages:
  base: {run: base, source: "random:tiny-llama", vocabulary: 400, hidden: 32, layers: 1, heads: 2, max_length: 96}
  sft: {run: train, method: sft, model: base, data: $instructions, lr: 1.0e-3, batch: 8, max_steps: 2}
  dpo:
    {run: train, method: dpo, model: sft, data: $preferences, batch: 8, max_steps: 4, epochs: 9, evaluate_every: 2}
"""


def test_a_range_of_margins_is_read_and_marked_pairs_are_flipped_in_a_new_version(page: Page, world: World) -> None:
    world.import_rows("compared", "preferences", preferences())
    body = {"text": RECIPE, "set": ["instructions=things", "preferences=compared"]}
    made = world.client.post("pipelines", json=body)
    made.raise_for_status()
    name = made.json()["name"]
    world.wait(lambda: world.get(f"pipelines/{name}")["state"] in ("succeeded", "failed"), "the pipeline", 150)
    (run,) = [one for one in world.get(f"runs?pipeline={name}")["items"] if one["name"] == "dpo"]
    assert run["state"] == "succeeded", run
    margins = [one for one in world.get(f"runs/{run['id']}/pairs/4") if one["split"] == "train"]
    page.goto(f"/p/default/runs/{run['id']}")
    page.get_by_role("tab", name="Pairs").click()
    page.get_by_text(re.compile("^Trained on")).click()
    status = page.get_by_role("status").filter(has_text="wrong-sided")
    expect(status).to_contain_text(f"{len(margins)} in the range")
    box = page.get_by_test_id("margin-brush").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 1, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20, steps=4)
    page.mouse.up()
    middle = (margins[0]["margin"] + margins[-1]["margin"]) / 2
    inside = sum(one["margin"] <= middle for one in margins)
    expect(status).to_contain_text(re.compile(rf"; ({inside - 1}|{inside}|{inside + 1}) in the range"))
    first = page.get_by_role("group", name=f"Row {margins[1]['row']}", exact=True)
    expect(first.locator("pre span[title$='nats']").first).to_be_visible()
    first.get_by_text("Flip").click()
    expect(page.get_by_text("0 to drop, 1 to flip")).to_be_visible()
    faults = faults_of(page, "pairs")
    page.get_by_role("button", name="New dataset version").click()
    page.get_by_role("link", name="Open the dataset").click()
    expect(page.get_by_text("edited from compared")).to_be_visible()
    assert not faults, told(faults)
