"""A run's curves and figures in the browser: the important ones first, zoomed while it trains, and those it reused."""

from __future__ import annotations

import re
import uuid

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.runs.state import attempt_outcomes
from steerboard.runs.state.claims import Claim
from steerboard.runs.state.lifecycle import InputRef, request_cancel
from steerboard.runs.tables import Run
from steerboard_contracts.stage.events import Metrics
from support.rows.run_world import World

TRAINS = {"run": "train", "method": "sft"}


@pytest.fixture
def world(sessions: sessionmaker[Session], project: Project) -> World:
    return World(sessions, project)


def given(world: World) -> dict[str, InputRef]:
    return {"data": InputRef(dataset=world.dataset()), "model": InputRef(model=world.model())}


def started(world: World, inputs: dict[str, InputRef]) -> tuple[uuid.UUID, Claim]:
    run = world.create("sft", config=TRAINS, inputs=inputs)
    claim = world.claim()
    assert claim is not None
    return run, claim


def train(world: World, claim: Claim, first: int, last: int) -> None:
    values = {"lr": 0.1, "z_first_by_length": 1.0, "eval_loss": 2.0, "loss": 1.0}
    world.emit(claim, *(Metrics(step=step, values=values) for step in range(first, last)))


def test_a_zoomed_curve_stays_zoomed_while_steps_are_added(rows_page: Page, world: World) -> None:
    page = rows_page
    run, claim = started(world, given(world))
    train(world, claim, 1, 50)
    page.goto(f"/p/default/runs/{run}?tab=charts")
    chart = page.get_by_role("img", name=re.compile("^loss over step"))
    over = chart.locator(".u-over")
    box = over.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40, steps=4)
    page.mouse.up()
    whole = page.get_by_role("button", name="Whole range")
    expect(whole).to_have_count(1)
    world.emit(claim, *(Metrics(step=step, values={"loss": 7.5}) for step in range(50, 60)))
    expect(page.get_by_role("img", name=re.compile("^loss over step. loss ends at 7.5"))).to_be_visible()
    expect(whole).to_have_count(1)
    whole.click()
    expect(whole).to_have_count(0)


def test_figures_and_curves_are_in_the_order_of_their_importance_also_of_a_run_that_reused_them(
    rows_page: Page, world: World
) -> None:
    page = rows_page
    inputs = given(world)
    run, claim = started(world, inputs)
    train(world, claim, 1, 5)
    summary = {"tokens": 9, "lr": 0.1, "loss": 1.0, "eval_loss": 2.0, "held_out_accuracy": 0.9}
    summary |= {"parameters": 4000, "trainable_parameters": 1000}
    world.act(claim, lambda session, claimed: attempt_outcomes.succeed(session, claimed, summary, 2.0))
    again = world.create("again", config=TRAINS, inputs=inputs, reuse=True)
    assert world.get(again).reused_from_id == run
    page.goto(f"/p/default/runs/{again}?tab=charts")
    link = page.get_by_role("link", name="the run that did the work")
    expect(link).to_have_attribute("href", re.compile(f"/runs/{run}\\?tab=charts"))
    page.get_by_role("switch", name="All 4 metrics").check()
    curves = page.get_by_role("img", name=re.compile(" over step"))
    expect(curves).to_have_count(4)
    names = [str(one.get_attribute("aria-label")).split(" ")[0] for one in curves.all()]
    assert names == ["eval_loss", "loss", "z_first_by_length", "lr"]
    expect(page.get_by_role("main")).to_contain_text("Trained parameters1,000 (25.00%)")
    page.get_by_role("button", name=re.compile("more figures")).click()
    text = page.locator("main").inner_text()
    places = [text.index(name) for name in ("held out accuracy", "eval loss", "\nloss", "\nlr", "\ntokens")]
    assert places == sorted(places)


def test_a_pipeline_that_waits_and_one_that_was_cancelled_in_the_queue_took_no_time(
    rows_page: Page, world: World
) -> None:
    page = rows_page
    pipeline = world.pipeline("waits")
    run = world.create("stage", pipeline_id=pipeline)
    page.goto(f"/p/default/pipelines/{pipeline}")
    expect(page.get_by_text(re.compile("waiting for a worker for"))).to_be_visible()
    with transaction(world.sessions) as session:
        request_cancel(session, session.get_one(Run, run), "ann")
    page.reload()
    expect(page.get_by_text(re.compile("ended before a worker took it"))).to_be_visible()
    page.goto("/p/default/pipelines")
    row = page.get_by_role("table").get_by_role("row").nth(1)
    expect(row.get_by_role("cell").nth(3)).to_have_text("–")
