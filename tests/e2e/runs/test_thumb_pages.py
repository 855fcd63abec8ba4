"""A KTO run in the browser: its answers with their thumbs, during the run and afterwards; a thumb that is turned."""

from __future__ import annotations

import re
from typing import Any

import pytest
from dashboard_world import World, instructions
from page_checks import faults_of, told
from playwright.sync_api import Page, expect

EVERY, STEPS = 20, 240
RECIPE = f"""
name: thumbs
inputs:
  instructions: {{type: dataset, kind: instructions}}
  thumbs: {{type: dataset, kind: unpaired}}
stages:
  base: {{run: base, source: "random:tiny-llama", vocabulary: 400, hidden: 32, layers: 1, heads: 2, max_length: 96}}
  kto:
    run: train
    method: kto
    model: base
    data: $thumbs
    batch: 8
    lr: 3.0e-5
    epochs: 1000
    max_steps: {STEPS}
    evaluate_every: {EVERY}
"""


def thumbs() -> list[dict[str, Any]]:
    """Every fifth one has the wrong thumb."""
    return [
        {
            "prompt": row["prompt"],
            "response": row["response"] if place % 2 == 0 else "No.",
            "desirable": (place % 2 == 0) != (place % 5 == 0),
        }
        for place, row in enumerate(instructions())
    ]


@pytest.mark.long
def test_answers_with_thumbs_are_read_while_a_run_goes_on_and_a_turned_thumb_makes_a_new_version(
    page: Page, world: World
) -> None:
    world.import_rows("thumbs", "unpaired", thumbs())
    made = world.client.post("pipelines", json={"text": RECIPE, "set": ["instructions=things", "thumbs=thumbs"]})
    assert made.is_success, made.text
    (kto,) = [run for run in world.get(f"runs?pipeline={made.json()['name']}")["items"] if run["name"] == "kto"]
    run = f"runs/{kto['id']}"
    page.goto(f"/p/default/{run}?tab=pairs")
    # Without a reload, from here to the end.
    step = page.get_by_role("combobox", name="After step")
    live = page.get_by_text("The newest evaluated step.")
    expect(live).to_be_visible()
    first = int(step.input_value())
    assert 0 < first < STEPS
    expect(page.get_by_role("status").filter(has_text="wrong-sided")).to_contain_text(" answers (")
    world.wait(lambda: world.get(run)["state"] in ("succeeded", "failed"), "the run")
    assert world.get(run)["state"] == "succeeded"
    expect(live).to_be_hidden()
    expect(step).to_have_value(str(STEPS))
    step.click()
    expect(page.get_by_role("option", name=str(EVERY), exact=True)).to_be_visible()
    page.keyboard.press("Escape")

    page.get_by_text(re.compile("^Trained on")).click()
    margins = [pair for pair in world.get(f"{run}/pairs/{STEPS}") if pair["split"] == "train"]
    wrong = [pair for pair in margins if pair["margin"] < 0]
    status = page.get_by_role("status").filter(has_text="wrong-sided")
    expect(status).to_contain_text(f"{len(wrong)} of {len(margins)} answers")
    lowest = margins[0]
    assert (lowest["row"] % 5, lowest["margin"] < 0) == (0, True)
    thumb = "undesirable" if lowest["chosen_reward"] is None else "desirable"
    card = page.get_by_role("group", name=f"Row {lowest['row']}, {thumb}", exact=True)
    expect(card).to_contain_text(f"marked {thumb}, log-ratio")
    expect(card.locator("pre.text", has=page.locator("span[title$='nats']"))).to_have_count(1)
    card.get_by_text("Flip").click()
    expect(page.get_by_text("0 to drop, 1 to flip")).to_be_visible()
    faults = faults_of(page, "thumbs")
    page.get_by_role("button", name="New dataset version").click()
    page.get_by_role("link", name="Open the dataset").click()
    expect(page.get_by_text("edited from thumbs")).to_be_visible()
    edited = world.get(f"datasets/thumbs-edited-1/samples?row={lowest['row']}")["items"]
    turned = {row["row"]: row["sample"]["desirable"] for row in edited}
    assert turned[lowest["row"]] == (thumb == "undesirable")
    assert not faults, told(faults)
