"""Charts of runs in the browser: enlarged, in a range of y that a person chose, and with runs in groups."""

from __future__ import annotations

import json
import re
import uuid
from urllib.parse import quote

import pytest
from page_checks import faults_of, told
from playwright.sync_api import Locator, Page, expect
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.runs.state import attempt_outcomes
from steerboard.runs.state.lifecycle import InputRef
from steerboard_contracts.stage.events import Metrics
from support.rows.run_world import World

STEPS = range(1, 41)


@pytest.fixture
def world(sessions: sessionmaker[Session], project: Project) -> World:
    return World(sessions, project)


def trained(world: World, lr: float, seed: int, end: float, spike: float | None = None) -> uuid.UUID:
    """A run whose loss falls from 1 + `end` to `end`."""
    inputs = {"data": InputRef(dataset=world.dataset()), "model": InputRef(model=world.model())}
    config = {"run": "train", "method": "sft", "lr": lr, "seed": seed}
    run = world.create(f"sft-{lr}-{seed}", config=config, inputs=inputs)
    claim = world.claim()
    assert claim is not None
    losses = {step: end + 1 - step / 40 for step in STEPS} | ({20: spike} if spike else {})
    rows = [Metrics(step=step, values={"loss": loss, "eval_loss": 2 * loss}) for step, loss in losses.items()]
    world.emit(claim, *rows)
    world.act(claim, lambda session, claimed: attempt_outcomes.succeed(session, claimed, {}, 2.0))
    return run


def chart(page: Page) -> Locator:
    return page.get_by_role("img", name=re.compile("^loss over step"))


def top_of(page: Page) -> float:
    """The highest mark on the axis of y, from the picture of the chart."""
    page.get_by_role("button", name="Export loss", exact=True).click()
    with page.expect_download() as downloading:
        page.get_by_role("menuitem", name="Picture as SVG").click()
    marks = re.findall(r'text-anchor="end">([^<]+)<', downloading.value.path().read_text())
    return max(float(mark) for mark in marks)


def test_a_chart_takes_the_window_with_its_zoom_and_gives_it_back(rows_page: Page, world: World) -> None:
    page = rows_page
    run = trained(world, 1e-4, 1, 0.5)
    page.goto(f"/p/default/runs/{run}?tab=charts")
    page.get_by_role("group", name="Chart of loss", exact=True).get_by_role("button", name="Zoom in").click()
    enlarge = page.get_by_role("button", name="Enlarge loss", exact=True)
    enlarge.focus()
    page.keyboard.press("Enter")
    window = page.get_by_role("dialog", name="loss")
    expect(chart(page)).to_have_count(1)
    box = window.locator(".u-over").bounding_box()
    assert box is not None
    assert box["width"] > 1000
    assert box["height"] > 400
    # The zoom came along: in the middle of the plot is the middle of the run, at its ends a quarter and three.
    legend = window.locator(".chart-legend")
    for share, step in ((0.02, "11"), (0.5, "2"), (0.98, "3")):
        page.mouse.move(box["x"] + box["width"] * share, box["y"] + 100)
        expect(legend).to_contain_text(re.compile(f"Step {step}"))
    faults = faults_of(page, "chart-enlarged")
    whole = window.get_by_role("button", name="Whole range")
    whole.click()
    expect(whole).to_have_count(0)
    window.get_by_role("button", name="Zoom in").click()
    window.get_by_role("button", name="Move right").click()
    page.keyboard.press("Escape")
    expect(window).to_have_count(0)
    expect(enlarge).to_be_focused()
    expect(page.get_by_role("button", name="Whole range")).to_have_count(1)
    assert not faults, told(faults)


def test_a_crosshair_is_right_in_zoomed_charts(rows_page: Page, world: World) -> None:
    page = rows_page
    run = trained(world, 1e-4, 1, 0.5)
    page.goto(f"/p/default/runs/{run}?tab=charts")
    held_out = page.locator(".mantine-Card-root", has=page.get_by_role("img", name=re.compile("^eval_loss over")))
    card = page.locator(".mantine-Card-root", has=chart(page))
    # One chart shows the last half, the other one the whole.
    held_out.get_by_role("button", name="Zoom in").click()
    for _ in range(3):
        held_out.get_by_role("button", name="Move right").click()
    box = card.locator(".u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 50)
    expect(card.locator(".chart-legend")).to_contain_text("Step 36")
    expect(held_out.locator(".chart-legend")).to_contain_text("Step 36")
    page.mouse.move(box["x"] + box["width"] * 0.1, box["y"] + 50)
    expect(card.locator(".chart-legend")).to_contain_text("Step 5")
    # That step is not in sight there, so it shows where the run ended.
    expect(held_out.locator(".chart-legend")).to_contain_text("Step 40")
    expect(held_out.locator(".u-cursor-x.u-off")).to_have_count(1)
    # The first half: a step behind its end is not in sight either.
    for _ in range(3):
        held_out.get_by_role("button", name="Move left").click()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 60)
    expect(card.locator(".chart-legend")).to_contain_text("Step 36")
    expect(held_out.locator(".chart-legend")).to_contain_text("Step 40")
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 60)
    expect(held_out.locator(".chart-legend")).to_contain_text("Step 11")


def test_a_range_of_y_is_chosen_and_kept(rows_page: Page, world: World) -> None:
    page = rows_page
    run = trained(world, 1e-4, 1, 0.5, spike=900.0)
    page.goto(f"/p/default/runs/{run}?tab=charts")
    expect(chart(page)).to_be_visible()
    assert top_of(page) >= 800
    page.get_by_role("button", name="Range of loss", exact=True).click()
    fields = page.get_by_role("dialog", name="Range of loss")
    fields.get_by_role("combobox", name="Outliers").click()
    page.get_by_role("option", name="Leave out 5% at either end").click()
    card = page.locator(".mantine-Card-root", has=chart(page))
    expect(card).to_contain_text("outside the range of y")
    faults = faults_of(page, "chart-range")
    page.keyboard.press("Escape")
    assert top_of(page) < 3
    page.reload()
    expect(page.get_by_role("button", name="Range of loss", exact=True)).to_have_attribute("aria-pressed", "true")
    assert top_of(page) < 3
    page.get_by_role("button", name="Range of loss", exact=True).click()
    fields.get_by_role("textbox", name="Maximum").fill("6")
    fields.get_by_role("textbox", name="Minimum").fill("7")
    expect(fields).to_contain_text("The minimum has to be below the maximum.")
    fields.get_by_role("textbox", name="Minimum").fill("0")
    expect(card).to_contain_text("1 value is outside the range of y")
    page.keyboard.press("Escape")
    assert top_of(page) == 6
    page.get_by_role("button", name="Range of loss", exact=True).click()
    fields.get_by_role("button", name="Reset").click()
    expect(card).not_to_contain_text("outside the range of y")
    assert not faults, told(faults)


def test_runs_are_drawn_as_the_means_of_their_groups(rows_page: Page, world: World) -> None:
    page = rows_page
    ends = {(1e-4, 1): 0.25, (1e-4, 2): 0.75, (1e-3, 1): 2.0, (1e-3, 2): 3.0}
    runs = [str(trained(world, lr, seed, end)) for (lr, seed), end in ends.items()]
    page.goto(f"/p/default/compare?runs={quote(json.dumps(runs))}")
    card = page.locator(".mantine-Card-root", has=chart(page))
    expect(card.locator(".chart-legend").get_by_role("button")).to_have_count(4)
    page.get_by_role("combobox", name="Group runs by").click()
    page.get_by_role("option", name="By lr").click()
    expect(chart(page)).to_have_attribute(
        "aria-label",
        re.compile(r"lr = 1e-4 \(2 runs\) ends at 0.5; lr = 0.001 \(2 runs\) ends at 2.5"),
    )
    groups = card.locator(".chart-legend").get_by_role("button")
    expect(groups).to_have_count(2)
    faults = faults_of(page, "charts-of-groups")
    groups.nth(0).click()
    page.get_by_role("button", name="Export loss", exact=True).click()
    with page.expect_download() as downloading:
        page.get_by_role("menuitem", name="Values as CSV").click()
    lines = downloading.value.path().read_text().splitlines()
    # What is switched off is not in it; the band is.
    assert lines[0] == 'step,lr = 0.001 (2 runs),"lr = 0.001 (2 runs), low","lr = 0.001 (2 runs), high"'
    assert lines[-1] == "40,2.5,2,3"
    page.get_by_role("radiogroup", name="Band around the mean").get_by_text("Standard deviation").click()
    page.get_by_role("button", name="Export loss", exact=True).click()
    with page.expect_download() as downloading:
        page.get_by_role("menuitem", name="Values as CSV").click()
    last = downloading.value.path().read_text().splitlines()[-1].split(",")
    assert [round(float(value), 3) for value in last] == [40, 2.5, 1.793, 3.207]
    page.reload()
    expect(groups).to_have_count(2)
    assert not faults, told(faults)
