"""A sweep in the browser: its variants as lines and rows, the best first, in light, dark and on a phone."""

from __future__ import annotations

import re

import pytest
from dashboard_world import World
from page_checks import faults_of, told
from playwright.sync_api import Page, expect

RECIPE = """
name: swept
inputs:
  instructions: {type: dataset, kind: instructions}
  preferences: {type: dataset, kind: preferences}
sweep:
  vary:
    tuned.lr: [1.0e-9, 3.0e-2]
    tuned.weight_decay: [0.0, 0.1]
  metric: report
  halving: {figure: tuned.eval_loss, goal: minimize, factor: 2, rungs: [2, 4]}
stages:
  base: {run: base, source: "random:tiny-llama", vocabulary: 400, hidden: 32, layers: 1, heads: 2, max_length: 96}
  reward: {run: train, method: reward_model, model: base, data: $preferences, lr: 1.0e-3, batch: 8, max_steps: 4}
  tuned: {run: train, method: sft, model: base, data: $instructions, lr: 1.0e-3, batch: 8}
  report:
    run: evaluate
    entrants: [base, tuned]
    rewards: [reward]
    prompts: 8
    decoding: {temperature: 0.0, max_new_tokens: 8}
"""

# Variants that cannot differ much, by a figure that has an interval.
HALVED = """
name: halved
inputs:
  preferences: {type: dataset, kind: preferences}
sweep:
  vary: {reward.weight_decay: [0.0, 0.1]}
  metric: reward.held_out_accuracy
  goal: maximize
  halving: {figure: reward.held_out_accuracy, goal: maximize, factor: 2, rungs: [2, 4]}
stages:
  base: {run: base, source: "random:tiny-llama", vocabulary: 400, hidden: 32, layers: 1, heads: 2, max_length: 96}
  reward: {run: train, method: reward_model, model: base, data: $preferences, lr: 1.0e-6, batch: 8}
"""


@pytest.mark.long
def test_a_sweep_shows_its_variants_as_lines_and_rows_with_the_best_first(page: Page, world: World) -> None:
    body = {"text": RECIPE, "set": ["instructions=things", "preferences=pairs"]}
    world.client.post("pipelines", json=body).raise_for_status()
    page.goto("/p/default/pipelines/swept-1")
    # Before there are figures: the settings of every variant, and what is awaited.
    expect(page.get_by_role("tab", name="Sweep")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_text("No figures yet: report is pending.")).to_be_visible()
    rows = page.get_by_role("table", name=re.compile("^Variants")).get_by_role("row")
    expect(rows).to_have_count(5)
    expect(page.locator(".variant-line[data-variant]")).to_have_count(4)
    world.wait(lambda: world.get("pipelines/swept-1")["state"] == "succeeded", "the sweep")

    sweep = world.get("pipelines/swept-1/sweep")
    # Without a reload.
    expect(page.get_by_text(sweep["verdict"], exact=True)).to_be_visible()
    expect(rows.nth(1)).to_contain_text(f"tuned-{sweep['best']}")
    expect(rows.nth(1)).to_contain_text("best")
    noise = rows.filter(has_text="within noise")
    expect(noise).to_have_count(len(sweep["within_noise"]))
    expect(page.locator('.variant-line[data-level="2"][data-variant]')).to_have_count(1)
    dropped = [variant for variant in sweep["variants"] if variant["dropped_after"]]
    assert len(dropped) == 2
    banner = page.get_by_role("alert").filter(has_text="2 of 4 variants were dropped")
    expect(banner).to_contain_text(f"Variant {dropped[0]['number']} (tuned.lr")
    expect(banner).to_contain_text(re.compile(r"dropped after rung 1 \(2 steps\): eval_loss [\d.]+ is not among the 2"))
    expect(rows.filter(has_text="dropped after rung 1")).to_have_count(2)
    # A row that is pointed at is the line on top.
    rows.nth(4).hover()
    expect(page.locator('.variant-line[data-level="3"]')).to_have_count(1)
    page.mouse.move(0, 0)
    assert faults_of(page, "sweep") == {}
    rows.nth(1).get_by_role("link").click()
    expect(page.get_by_role("heading", name=re.compile(f"tuned-{sweep['best']}"))).to_be_visible()


@pytest.mark.long
def test_dropped_variants_have_the_interval_of_their_figure_and_are_told_to_be_within_noise(
    page: Page, world: World
) -> None:
    world.client.post("pipelines", json={"text": HALVED, "set": ["preferences=pairs"]}).raise_for_status()
    world.wait(lambda: world.get("pipelines/halved-1")["state"] in ("succeeded", "failed"), "the sweep")
    (dropped,) = [variant for variant in world.get("pipelines/halved-1/sweep")["variants"] if variant["dropped_after"]]
    rung = dropped["rungs"][0]
    assert dropped["dropped_within_noise"]
    # Whatever tab is open.
    page.goto("/p/default/pipelines/halved-1?tab=report")
    line = page.get_by_role("list", name="Dropped variants").get_by_role("listitem")
    expect(line).to_contain_text(f"Variant {dropped['number']} (reward.weight_decay")
    bounds = re.search(r"95% interval ([\d.]+) to ([\d.]+) within noise", " ".join(line.inner_text().split()))
    assert bounds is not None, line.inner_text()
    assert [float(bound) for bound in bounds.groups()] == pytest.approx([rung["low"], rung["high"]], abs=5e-4)
    faults = faults_of(page, "dropped variants")
    assert not faults, told(faults)
    page.get_by_role("tab", name="Sweep").click()
    row = page.get_by_role("row").filter(has_text="dropped after rung 1, within noise")
    expect(row).to_have_count(1)
    badge = row.locator(".mantine-Badge-label")
    assert badge.evaluate("one => one.scrollWidth <= one.clientWidth"), "the badge is cut"
