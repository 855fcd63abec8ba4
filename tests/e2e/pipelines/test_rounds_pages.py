"""Rounds in the browser: a row each, with what was measured, and a policy that is promoted and rolled back from."""

from __future__ import annotations

import re

import pytest
from dashboard_world import World
from page_checks import faults_of, too_wide
from playwright.sync_api import Page, expect
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from support.rows import run_world
from support.rows.rounds_world import Rounds

RECIPE = """
name: looped
inputs:
  instructions: {type: dataset, kind: instructions}
  preferences: {type: dataset, kind: preferences}
rounds: {count: 2, stop: {judge: referee, prompts: 8, decoding: {max_new_tokens: 8}}}
round:
  previous: base
  stages:
    answers: {run: generate, model: previous, data: $instructions, decoding: {temperature: 1, n: 3, max_new_tokens: 8}}
    scored: {run: score, data: answers, reward: reward}
    best: {run: select, data: scored}
    tuned: {run: train, method: sft, model: previous, data: best, lr: 1.0e-9, batch: 8, max_steps: 2}
stages:
  base: {run: base, source: "random:tiny-llama", vocabulary: 400, hidden: 32, layers: 1, heads: 2, max_length: 96}
  reward: {run: train, method: reward_model, model: base, data: $preferences, lr: 1.0e-3, batch: 8, max_steps: 4}
  referee: {run: train, method: reward_model, model: base, data: $preferences, lr: 1.0e-3, batch: 8, max_steps: 2}
"""


@pytest.mark.long
def test_rounds_are_shown_and_a_policy_is_promoted_and_rolled_back_from(page: Page, world: World) -> None:
    body = {"text": RECIPE, "set": ["instructions=things", "preferences=pairs"]}
    world.client.post("pipelines", json=body).raise_for_status()
    page.goto("/p/default/pipelines/looped-1")
    expect(page.get_by_role("tab", name="Rounds")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_text("0 of 2 rounds have been run so far.")).to_be_visible()
    rows = page.get_by_role("table", name=re.compile("^Rounds")).get_by_role("row")
    expect(rows).to_have_count(3)
    expect(rows.nth(1)).to_contain_text("not measured")
    assert too_wide(page, "rounds-empty") == {}
    world.wait(lambda: world.get("pipelines/looped-1")["state"] == "succeeded", "the rounds")

    rounds = world.get("pipelines/looped-1/rounds")
    # Without a reload. A policy that training has hardly changed gives equal answers, and its judge does not fall.
    expect(page.get_by_text(rounds["verdict"], exact=True)).to_be_visible()
    for number, row in enumerate(rounds["rounds"], start=1):
        pairs, answers = row["selection"], row["answers"]
        expect(rows.nth(number)).to_contain_text(f"{pairs['kept_groups']} of {pairs['groups']} prompts")
        expect(rows.nth(number)).to_contain_text(f"n {answers['against_previous']['n']}")
    expect(rows.nth(2)).to_contain_text("result")
    assert faults_of(page, "rounds") == {}

    for number in (1, 2):
        rows.nth(number).get_by_role("button", name="Promote").click()
        page.get_by_role("dialog").get_by_role("button", name="Promote").click()
        expect(rows.nth(number)).to_contain_text("production")
    expect(rows.nth(1)).not_to_contain_text("production")
    rows.nth(2).get_by_role("button", name="Roll back").click()
    expect(page.get_by_role("dialog")).to_contain_text("@production then refers to looped-1.tuned-1.")
    page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    expect(rows.nth(1)).to_contain_text("production")
    assert world.get("models/@production")["name"] == "looped-1.tuned-1"
    world.client.post("models/looped-1.tuned-1/promotions", json={"stage": None}).raise_for_status()


def test_rounds_after_a_fall_say_why_they_were_not_run_and_the_one_before_it_is_the_result(
    rows_page: Page, sessions: sessionmaker[Session], project: Project
) -> None:
    rounds = Rounds(run_world.World(sessions, project))
    rounds.work(fall=2)
    page = rows_page
    page.goto(f"/p/default/pipelines/{rounds.id}")
    why = "after round 2, referee fell from 0.31 to 0.12 on 100 prompts (p 0.003)"
    stopped = page.get_by_role("alert").filter(has_text="The rounds were stopped")
    expect(stopped).to_contain_text(f"Not run: {why}.")
    verdict = f"A{why[1:]}. Round 3 was not run. The result is that of round 1."
    expect(page.get_by_text(verdict, exact=True)).to_be_visible()
    rows = page.get_by_role("table", name=re.compile("^Rounds")).get_by_role("row")
    expect(rows).to_have_count(4)
    for number, standing in enumerate(("result", "fell", "skipped"), start=1):
        expect(rows.nth(number).get_by_role("cell").first).to_contain_text(standing)
    expect(rows.nth(3).get_by_role("cell").last).to_have_text(f"not run: {why}")
    faults = faults_of(page, "rounds-stopped")
    # A round that was not run made no model; its row leads to the run that would have.
    rows.nth(3).get_by_role("link", name="tuned-3").click()
    expect(page.get_by_role("heading", name="tuned-3")).to_be_visible()
    assert faults == {}
