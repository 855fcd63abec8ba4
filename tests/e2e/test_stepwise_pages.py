"""Answers by steps from a file to rewards: imported, learned from, and scored by; and the page of a row."""

from __future__ import annotations

import random
from typing import Any

import pytest
from dashboard_world import World
from page_checks import faults_of
from playwright.sync_api import Page, expect

BASE = {"run": "base", "source": "random:tiny-llama", "vocabulary": 300, "hidden": 32, "layers": 1, "heads": 2}
TRAIN = {"run": "train", "method": "process_reward_model", "batch": 8, "max_steps": 4, "lr": 1e-3}


def answers() -> list[dict[str, Any]]:
    draw = random.Random(0)
    rows = []
    for row in range(40):
        right = [True, draw.random() < 0.5]
        steps = [f"{row} + 1 = {row + 1}", f"{row} + 2 = {row + (2 if right[1] else 3)}"]
        rows.append({"prompt": f"Add 1 and 2 to {row}.", "completions": steps, "labels": right, "origin": "hand"})
    rows[7]["labels"] = [0.75, 0.5]
    return rows


def finished(world: World, name: str, config: dict[str, Any], inputs: dict[str, str]) -> str:
    """Run it, and return the name of what it made."""
    world.client.post("runs", json={"name": name, "config": config, "inputs": inputs}).raise_for_status()
    world.wait(lambda: world.get(f"runs/{name}")["state"] in ("succeeded", "failed"), name)
    run = world.get(f"runs/{name}")
    assert run["state"] == "succeeded", run
    return str(run["outputs"][0]["label"])


@pytest.fixture(scope="module")
def imported(world: World) -> str:
    world.import_rows("sums", "stepwise", answers())
    return "sums"


def test_a_file_is_imported_learned_from_and_what_was_learned_scores_answers(world: World, imported: str) -> None:
    base = finished(world, "steps-base", {**BASE, "max_length": 96}, {"data.0": imported})
    model = finished(world, "steps-trained", TRAIN, {"model": base, "data": imported})
    described = world.get(f"models/{model}")
    assert (described["role"], described["method"]) == ("reward", "process_reward_model")
    assert described["info"]["process"] == {"separator": "\n", "aggregate": "min"}
    world.import_rows(
        "solutions", "instructions", [{"prompt": f"Add {n}.", "response": f"{n}\n{n + 1}\n3"} for n in range(9)]
    )
    sources = []
    for name, config in (("lowest", {}), ("average", {"aggregate": "mean"})):
        scored = finished(world, name, {"run": "score", **config}, {"data": "solutions", "reward": model})
        dataset = world.get(f"datasets/{scored}")
        sources.append((dataset["reward_source"], dataset["normaliser"]["reward_model_hash"]))
        rewards = [sample["reward"] for sample in world.get(f"datasets/{scored}/samples")["items"]]
        assert len(rewards) == 9
        assert all(0 < reward < 1 for reward in rewards)
    (own, of_model), (other, unknown) = sources
    assert (other, of_model is not None, unknown) == (f"{model}.mean", True, None)
    assert own != other


def test_a_row_shows_its_steps_each_with_its_label(world: World, imported: str, page: Page) -> None:
    page.goto(f"/p/default/datasets/{imported}?row=7")
    steps = page.get_by_role("list", name="Steps").get_by_role("listitem")
    expect(steps).to_have_count(2)
    expect(steps.nth(0)).to_contain_text("7 + 1 = 8")
    expect(steps.nth(0)).to_contain_text("0.75")
    assert faults_of(page, "stepwise-row") == {}
    page.goto(f"/p/default/datasets/{imported}?row=8")
    expect(steps.nth(0)).to_contain_text("right")


def test_the_form_of_the_method_offers_datasets_of_steps(world: World, imported: str, page: Page) -> None:
    page.goto("/p/default/launch/process_reward_model")
    expect(page.get_by_label("separator")).to_be_visible()
    expect(page.get_by_role("combobox", name="aggregate")).to_be_visible()
    assert faults_of(page, "stepwise-form") == {}
