"""A run with an environment in the browser: the turns of its rollouts."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from dashboard_world import World
from page_checks import faults_of, told
from playwright.sync_api import Page, expect

from support.environments import environment

RECIPE = """
name: turned
inputs:
  instructions: {type: dataset, kind: instructions}
stages:
  base: {run: base, source: "random:tiny-llama", vocabulary: 400, hidden: 32, layers: 1, heads: 2, max_length: 512}
  sft: {run: train, method: sft, model: base, data: $instructions, lr: 1.0e-3, batch: 8, max_steps: 150, epochs: 100}
  online:
    run: train
    method: rloo
    model: sft
    data: $instructions
    environment: ENVIRONMENT
    batch: 2
    answers: 4
    max_new_tokens: 80
    max_steps: 2
    epochs: 9
    lr: 1.0e-3
"""


@pytest.fixture(scope="module")
def run(world: World) -> dict[str, Any]:
    text = RECIPE.replace("ENVIRONMENT", json.dumps(environment("guess", max_turns=3)))
    made = world.client.post("pipelines", json={"text": text, "set": ["instructions=things"]})
    made.raise_for_status()
    name = made.json()["name"]
    world.wait(lambda: world.get(f"pipelines/{name}")["state"] in ("succeeded", "failed"), "the pipeline")
    (run,) = [run for run in world.get(f"runs?pipeline={name}")["items"] if run["name"] == "online"]
    assert run["state"] == "succeeded", run
    return dict(run)


@pytest.mark.long
def test_each_turn_of_a_rollout_shows_its_answer_its_observation_and_its_reward(
    page: Page, world: World, run: dict[str, Any]
) -> None:
    steps = world.get(f"runs/{run['id']}/groups")["steps"]
    newest = steps[-1]
    groups = [world.get(f"runs/{run['id']}/groups/{newest['step']}/{place}") for place in range(newest["groups"])]
    place = max(range(len(groups)), key=lambda at: max(len(answer["turns"]) for answer in groups[at]["answers"]))
    answer = max(groups[place]["answers"], key=lambda answer: len(answer["turns"]))
    assert len(answer["turns"]) > 1
    page.goto(f"/p/default/runs/{run['id']}?tab=groups")
    for _ in range(place):
        page.get_by_role("button", name="Next prompt").click()
    shown = page.get_by_role("group", name=f"Answer {answer['n'] + 1}", exact=True)
    turns = shown.get_by_role("region", name=re.compile(r"^Turn \d+$"))
    expect(turns).to_have_count(len(answer["turns"]))
    for number, turn in enumerate(answer["turns"], 1):
        section = shown.get_by_role("region", name=f"Turn {number}", exact=True)
        expect(section.locator("pre.text").first).to_have_text(turn["text"].strip())
        expect(section).to_contain_text(re.compile(rf"^Turn {number}, {turn['tokens']} tokens?, reward .?\d"))
        if turn["observation"]:
            expect(section.locator("pre.text").last).to_have_text(turn["observation"][0]["content"])
            expect(section).to_contain_text("environment, user")
    expect(shown).to_contain_text(re.compile(rf"turns {len(answer['turns'])}environment"))
    faults = faults_of(page, "turns")
    shown.get_by_role("button", name="Show all").click()
    faults |= faults_of(page, "turns of one")
    assert not faults, told(faults)
