"""Pages that follow a run while it works."""

from __future__ import annotations

import re

import pytest
from dashboard_world import World
from playwright.sync_api import Page, expect

LONG = """
name: growing
inputs:
  instructions: {type: dataset, kind: instructions}
stages:
  base: {run: base, source: "random:tiny-llama", vocabulary: 400, hidden: 32, layers: 1, heads: 2, max_length: 96}
  sft: {run: train, method: sft, model: base, data: $instructions, batch: 8, max_steps: 100000, epochs: 100000}
"""

# The chart's text for its last point, each time it changes.
WATCH = """
window.ends = new Set();
const look = () => {
  const chart = document.querySelector('[role=img][aria-label^="loss over step"]');
  if (chart) window.ends.add(chart.getAttribute('aria-label'));
};
new MutationObserver(look).observe(document.body, {subtree: true, childList: true, attributes: true});
look();
"""


@pytest.mark.long
def test_a_curve_grows_while_its_run_works(page: Page, world: World) -> None:
    body = {"text": LONG, "set": ["instructions=things"]}
    made = world.client.post("pipelines", json=body)
    made.raise_for_status()
    run = next(run["id"] for run in made.json()["runs"] if run["name"] == "sft")
    try:
        page.goto(f"/p/default/runs/{run}")
        chart = page.get_by_role("img", name=re.compile("^loss over step"))
        expect(chart).to_be_visible()
        page.evaluate(WATCH)
        # The charts are asked for every three seconds. The progress next to them is updated more often than that.
        page.wait_for_function("window.ends.size >= 5", timeout=25_000)
        expect(page.get_by_role("progressbar").first).to_be_visible()
    finally:
        world.client.post(f"runs/{run}/cancel").raise_for_status()
    expect(page.locator(".state-badge").first).to_have_text("cancelled")
