"""Curves and figures of runs in the browser: the important ones first, zoomed while a run trains, by mouse and by
keyboard, pinned, exported, compared, and those of a run that was reused."""

from __future__ import annotations

import json
import re
import uuid
from urllib.parse import quote

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
    chart.locator(".uplot").evaluate("plot => plot.dataset.same = 'yes'")
    world.emit(claim, *(Metrics(step=step, values={"loss": 7.5}) for step in range(50, 60)))
    expect(page.get_by_role("img", name=re.compile("^loss over step. loss ends at 7.5"))).to_be_visible()
    expect(whole).to_have_count(1)
    expect(chart.locator(".uplot")).to_have_attribute("data-same", "yes")
    # Another scale takes a new plot, in the range that was zoomed to.
    page.get_by_role("switch", name="log y").click()
    expect(chart.locator("[data-same]")).to_have_count(0)
    expect(whole).to_have_count(1)
    over.dblclick()
    expect(whole).to_have_count(0)


def test_charts_are_zoomed_moved_pinned_and_exported_by_the_keyboard(rows_page: Page, world: World) -> None:
    page = rows_page
    run, claim = started(world, given(world))
    train(world, claim, 1, 50)
    page.goto(f"/p/default/runs/{run}?tab=charts")
    tools = page.get_by_role("group", name="Chart of loss", exact=True)
    tools.get_by_role("button", name="Zoom in").focus()
    page.keyboard.press("Enter")
    expect(tools.get_by_role("button")).to_have_count(7)
    for name in ("Move left", "Move right", "Zoom out"):
        expect(tools.get_by_role("button", name=name)).to_be_visible()
    page.keyboard.press("Shift+Tab")
    expect(tools.get_by_role("button", name="Whole range")).to_be_focused()
    page.keyboard.press("Enter")
    expect(tools.get_by_role("button")).to_have_count(3)

    smoothing = page.get_by_role("slider", name="Smoothing")
    smoothing.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    expect(smoothing).to_have_attribute("aria-valuenow", "0.05")
    tools.get_by_role("button", name="Export loss").focus()
    page.keyboard.press("Enter")
    with page.expect_download() as downloading:
        page.get_by_role("menuitem", name="Values as CSV").press("Enter")
    lines = downloading.value.path().read_text().splitlines()
    assert downloading.value.suggested_filename == "loss over step.csv"
    assert lines[:2] == ["step,loss", "1,1"]
    assert len(lines) == 50

    page.get_by_role("button", name="Training 2").press("Enter")
    page.get_by_role("button", name="Pin lr").press("Enter")
    first = page.get_by_role("img", name=re.compile(" over step")).first
    expect(first).to_have_attribute("aria-label", re.compile("^lr over step"))
    page.reload()
    expect(first).to_have_attribute("aria-label", re.compile("^lr over step"))
    expect(smoothing).to_have_attribute("aria-valuenow", "0.05")
    page.get_by_role("textbox", name="Search metrics").fill("eval")
    expect(page.get_by_role("img", name=re.compile(" over step"))).to_have_count(1)


@pytest.mark.parametrize(("kind", "starts"), [("PNG", b"\x89PNG"), ("SVG", b"<svg")])
def test_a_chart_is_exported_as_a_picture(rows_page: Page, world: World, kind: str, starts: bytes) -> None:
    page = rows_page
    run, claim = started(world, given(world))
    train(world, claim, 1, 5)
    page.goto(f"/p/default/runs/{run}?tab=charts")
    page.get_by_role("button", name="Export loss").click()
    with page.expect_download() as downloading:
        page.get_by_role("menuitem", name=f"Picture as {kind}").click()
    assert downloading.value.path().read_bytes().startswith(starts)


def test_curves_are_drawn_over_what_the_run_has_measured(rows_page: Page, world: World) -> None:
    page = rows_page
    run, claim = started(world, given(world))
    values = {"loss": 1.0, "tokens": 100.0, "device_seconds": 8.0}
    world.emit(claim, *(Metrics(step=step, values={**values, "device_seconds": 4.0 * step}) for step in (1, 2, 3)))
    world.emit(claim, *(Metrics(step=at, values={"device/cpu_cores/anna": 1.5}) for at in (10, 20)))
    page.goto(f"/p/default/runs/{run}?tab=charts")
    axis = page.get_by_role("radiogroup", name="Horizontal axis")
    expect(axis.get_by_role("radio")).to_have_count(3)  # no wall time was measured
    axis.get_by_text("Tokens").click()
    expect(page.get_by_role("img", name=re.compile("^loss over tokens"))).to_be_visible()
    axis.get_by_text("Device time").click()
    expect(page.get_by_text("Device time 12 s")).to_be_visible()
    page.get_by_role("button", name="Device 1").click()
    expect(page.get_by_role("img", name=re.compile("^cpu_cores over time since the start. anna"))).to_be_visible()


def test_compared_runs_share_charts_and_keep_their_colours(rows_page: Page, world: World) -> None:
    page = rows_page
    runs = []
    for _ in range(3):
        run, claim = started(world, given(world))
        train(world, claim, 1, 5)
        runs.append(run)
    listed = json.dumps([str(run) for run in runs])
    page.goto(f"/p/default/compare?runs={quote(listed)}")
    chart = page.get_by_role("img", name=re.compile("^loss over step"))
    expect(chart).to_have_count(1)
    entries = page.locator(".mantine-Card-root", has=chart).locator(".chart-legend").get_by_role("button")
    expect(entries).to_have_count(3)
    color = "mark => getComputedStyle(mark).borderTopColor"
    last = entries.nth(2).locator(".chart-legend-mark").evaluate(color)
    entries.nth(0).press("Enter")
    expect(entries.nth(0)).to_have_attribute("aria-pressed", "false")
    page.get_by_role("button", name=re.compile("^Remove ")).first.click()
    expect(entries).to_have_count(2)
    assert entries.nth(1).locator(".chart-legend-mark").evaluate(color) == last


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
    page.get_by_role("button", name="Training 2").click()
    curves = page.get_by_role("img", name=re.compile(" over step"))
    expect(curves).to_have_count(4)
    names = [str(curve.get_attribute("aria-label")).split(" ")[0] for curve in curves.all()]
    assert names == ["eval_loss", "loss", "z_first_by_length", "lr"]
    expect(page.get_by_role("main")).to_contain_text("Trained parameters1,000 (25.00%)")
    page.get_by_role("button", name=re.compile("more figures")).click()
    text = page.locator("main").inner_text().partition("Duration")[2]  # below the charts
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
