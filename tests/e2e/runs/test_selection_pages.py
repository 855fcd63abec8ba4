"""Several answers or several rewards, in the browser: from a dataset's page to the best-of-k curve, or to one reward
with the correlations."""

from __future__ import annotations

import random
import re

import pytest
from dashboard_world import World
from page_checks import faults_of, told
from page_fields import choose
from playwright.sync_api import Page, expect


@pytest.fixture(scope="module")
def scored(world: World) -> None:
    chance = random.Random(0)
    rows = [
        {"prompt": f"Name a fruit, {group}.", "response": f"answer {chance.randrange(5)}", "reward": chance.gauss(0, 1)}
        | {"group": group, "candidate": candidate, "source": "generated"}
        for group in range(12)
        for candidate in range(4)
    ]
    world.import_rows("helpful", "labelled", rows)
    world.import_rows("harmless", "labelled", [{**row, "reward": chance.gauss(0, 1)} for row in rows])


def weigh(page: Page, *weights: str) -> None:
    for number, weight in enumerate(weights, 1):
        page.get_by_role("button", name="Add to weights").click()
        page.get_by_role("textbox", name=f"weights {number}", exact=True).fill(weight)


@pytest.mark.long
def test_a_selection_is_launched_from_a_dataset_and_shows_its_curve(page: Page, world: World, scored: None) -> None:
    page.goto("/p/default/datasets/helpful")
    page.get_by_role("link", name="Use it").click()
    page.get_by_role("link", name="Select among several answers per prompt").click()
    choose(page, "data.1", "^harmless")
    choose(page, "keep", "^best_and_worst")
    weigh(page, "1", "0.5", "2")
    expect(page.get_by_text("has 3 items, but 2 inputs are given for them").first).to_be_visible()
    page.get_by_role("button", name="Remove weights 3").click()
    page.get_by_role("button", name="Launch", exact=True).click()
    expect(page.locator(".state-badge").first).to_have_text("succeeded")
    panel = page.get_by_role("tabpanel", name="Selection")
    expect(panel).to_contain_text("of 12, 48 answers")
    curve = panel.get_by_role("img", name=re.compile("^score of the best"))
    expect(curve).to_have_attribute("aria-label", re.compile(r"over k\. "))
    panel.get_by_text("by KL").click()
    expect(curve).to_have_attribute("aria-label", re.compile("over KL"))
    table = panel.get_by_role("table", name="Best of k")
    expect(table.get_by_role("row")).to_have_count(5)
    expect(table.get_by_role("row", name=re.compile("^4 0.64"))).to_be_visible()
    expect(panel.get_by_role("table", name="Rewards", exact=True)).to_contain_text("harmless")
    expect(panel.get_by_role("table", name="Correlation of the rewards")).to_contain_text("1.00")
    faults = faults_of(page, "selection")
    assert not faults, told(faults)
    run = page.url.rpartition("/")[2].partition("?")[0]
    made = next(output for output in world.get(f"runs/{run}")["outputs"] if output["type"] == "dataset")
    page.get_by_role("link", name=made["label"]).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(made["label"])
    expect(page.get_by_role("main")).to_contain_text("preferences")
    assert world.get(f"runs/{run}/selection")["rewards"][1]["weight"] == 0.5


@pytest.mark.long
def test_two_rewards_are_combined_from_a_datasets_page_and_show_how_they_go_together(
    page: Page, world: World, scored: None
) -> None:
    page.goto("/p/default/datasets/helpful")
    page.get_by_role("link", name="Use it").click()
    page.get_by_role("link", name="Combine with other rewards of the same answers").click()
    choose(page, "data.1", "^harmless")
    weigh(page, "1", "-0.5")
    page.get_by_role("button", name="Launch", exact=True).click()
    expect(page.locator(".state-badge").first).to_have_text("succeeded")
    panel = page.get_by_role("tabpanel", name="Combination")
    rewards = panel.get_by_role("table", name="Rewards", exact=True)
    expect(rewards.get_by_role("row", name=re.compile("^harmless -0.5 "))).to_be_visible()
    table = panel.get_by_role("table", name="Correlation of the rewards")
    expect(table.get_by_role("row")).to_have_count(4)
    expect(table.get_by_role("row", name=re.compile("^sum"))).to_contain_text("1.00")
    expect(panel).to_contain_text("over 48 answers")
    faults = faults_of(page, "combination")
    assert not faults, told(faults)
    (run,) = world.get("runs?kind=combine")["items"]
    result = world.get(f"runs/{run['id']}/combination")
    made = next(output for output in world.get(f"runs/{run['id']}")["outputs"] if output["type"] == "rewards")
    labelled = world.get(f"datasets/{made['label']}")
    assert labelled["kind"] == "labelled"
    figures = ("reward_source", "weight", "mean", "sd", "n")
    parts, shown = labelled["normaliser"]["parts"], result["rewards"]
    assert [[part[name] for name in figures] for part in parts] == [[part[name] for name in figures] for part in shown]
    assert [part["reward_source"] for part in parts] == ["helpful", "harmless"]
