"""An online run in the browser: the answers to a prompt, settings that change, a pause, and its end."""

from __future__ import annotations

import re
from typing import Any

import pytest
from dashboard_world import World
from page_checks import faults_of, told, too_wide
from playwright.sync_api import Page, Request, expect

RECIPE = """
name: watched
inputs:
  instructions: {type: dataset, kind: instructions}
stages:
  base: {run: base, source: "random:tiny-llama", vocabulary: 400, hidden: 32, layers: 1, heads: 2, max_length: 96}
  online:
    run: train
    method: rloo
    model: base
    data: $instructions
    rules: [{kind: regex, pattern: "a"}]
    batch: 2
    answers: 3
    max_new_tokens: 8
    epochs: 5000
    lr: 1.0e-3
    checkpoint_seconds: 0
    checkpoint_every: 5
    health: [{kind: kl, above: 1.0e-9, steps: 1}]
"""

MODEL = {"run": "base", "source": "random:tiny-llama", "vocabulary": 400, "hidden": 32, "layers": 1, "heads": 2}


@pytest.mark.long
def test_an_online_run_is_watched_changed_paused_and_resumed(page: Page, world: World) -> None:
    made = world.client.post("pipelines", json={"text": RECIPE, "set": ["instructions=things"]})
    made.raise_for_status()
    name = made.json()["name"]

    def run() -> dict[str, Any]:
        return next(run for run in world.get(f"runs?pipeline={name}")["items"] if run["name"] == "online")

    path = f"runs/{run()['id']}"
    world.wait(lambda: world.get(f"{path}/groups")["steps"], "the first answers")
    page.goto(f"/p/default/{path}")
    page.get_by_role("tab", name="Groups").click()
    answers = page.get_by_role("group", name="Answer")
    expect(answers).to_have_count(3)
    expect(answers.first).to_contain_text("advantage")
    page.get_by_role("button", name="Next prompt").click()
    expect(page.get_by_text("2 of 2")).to_be_visible()
    page.get_by_role("button", name="Change settings").click()
    page.get_by_label("kl_weight").fill("0.5")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    world.wait(lambda: world.get(path)["changes"][0]["step"], "the change")
    page.get_by_role("button", name="Pause").click()
    world.wait(lambda: world.get(path)["state"] == "paused", "the pause")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    expect(page.get_by_text("Health")).to_be_visible()
    paused = world.get(path)
    assert paused["state"] == "paused"
    faults = faults_of(page, "groups")
    page.get_by_role("tab", name="Timeline").click()
    expect(page.get_by_text(f"from step {paused['changes'][0]['step']} on")).to_be_visible()
    faults |= too_wide(page, "watched-timeline")
    assert not faults, told(faults)
    page.get_by_role("button", name="Resume").click()

    def resumed() -> bool:
        log = world.get(f"{path}/logs?limit=500&newest_first=true")["items"]
        return any(line["message"].startswith("resumed from step") for line in log)

    world.wait(resumed, "the rest")
    world.client.post(f"{path}/cancel").raise_for_status()


@pytest.mark.long
def test_the_launch_form_sets_what_happens_when_the_reward_rises_while_a_judge_falls(page: Page, world: World) -> None:
    made = world.client.post("runs", json={"name": "unwatched", "config": MODEL, "inputs": {"data.0": "things"}})
    made.raise_for_status()
    path = f"runs/{made.json()['id']}"
    world.wait(lambda: world.get(path)["state"] == "succeeded", "the model")
    model = world.get(path)["outputs"][0]["label"]
    page.goto(f"/p/default/launch/rloo?model={model}&data=things")
    page.get_by_role("button", name=re.compile("^Evaluation and checkpoints")).click()
    # Online runs have a rule of each kind, this one last.
    rule = page.get_by_role("group", name="health 6", exact=True)
    expect(rule.get_by_role("combobox", name="Kind of health 6")).to_have_value("reward_against_judge")
    expect(rule).to_contain_text("figures of a judge fall that no one trains on")
    rule.get_by_role("combobox", name="action").click()
    page.get_by_role("option", name="pause").click()
    rule.get_by_role("textbox", name="falls").fill("3")

    def sent(request: Request) -> bool:
        return request.url.endswith("/runs/estimate") and "eval_reward_model_2" in (request.post_data or "")

    with page.expect_request(sent) as request:
        rule.get_by_role("textbox", name="judge").fill("eval_reward_model_2")
    *_, last = request.value.post_data_json["config"]["health"]
    assert {key: last[key] for key in ("kind", "judge", "falls", "action")} == {
        "kind": "reward_against_judge",
        "judge": "eval_reward_model_2",
        "falls": 3,
        "action": "pause",
    }
    faults = faults_of(page, "launch-health")
    assert not faults, told(faults)
