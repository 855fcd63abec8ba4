"""The table of runs in the browser: its key metric, its columns moved, sized and kept."""

from __future__ import annotations

import re

import pytest
from page_checks import faults_of, told
from playwright.sync_api import Locator, Page, expect
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from support.rows.listed_runs import Listed, list_run

METRICS = {
    "loss": [2.0, 1.5],
    "eval_loss": [1.75, 1.25],
    "kl": [0.5],
    "margin": [0.25],
    "entropy": [3.0],
    "length": [9.0],
}


@pytest.fixture
def runs(sessions: sessionmaker[Session], project: Project) -> int:
    """More of them than a page of the list has."""
    with transaction(sessions) as session:
        for number in range(60):
            one = Listed(f"run-{number:02}", settings={"lr": 1e-4}, metrics=METRICS, seconds=60.0, hours=number)
            list_run(session, project, one)
    return 60


def headings(page: Page) -> list[str | None]:
    return [one.get_attribute("data-heading") for one in page.locator("th[data-heading]").all()]


def width_of(heading: Locator) -> float:
    box = heading.bounding_box()
    assert box is not None
    return box["width"]


def test_columns_are_moved_sized_and_kept(rows_page: Page, runs: int) -> None:
    page = rows_page
    page.goto("/p/default/runs")
    rows = page.locator("tbody tr[data-run]")
    expect(rows).to_have_count(50)
    expect(rows.first.locator("[data-column=key_metric]")).to_have_text("eval_loss 1.25")
    assert headings(page) == ["name", "state", "key_metric", "kind", "duration", "device_seconds", "created"]

    # By the keyboard.
    grip = page.get_by_role("button", name="Move Created")
    grip.focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("The column Created is at place 6 of 6.")).to_have_count(1)
    for place in (5, 4):
        page.keyboard.press("ArrowLeft")
        expect(page.get_by_text(f"The column Created is at place {place} of 6.")).to_have_count(1)
    page.keyboard.press("Space")
    moved = ["name", "state", "key_metric", "kind", "created", "duration", "device_seconds"]
    expect(page.locator("th[data-heading]").nth(4)).to_have_attribute("data-heading", "created")
    assert headings(page) == moved
    # By the pointer, which takes a heading anywhere; a click on it sorts as before.
    kind, state = page.get_by_role("columnheader", name="Kind"), page.get_by_role("columnheader", name="State")
    kind_box, state_box = kind.bounding_box(), state.bounding_box()
    assert kind_box is not None
    assert state_box is not None
    page.mouse.move(kind_box["x"] + 20, kind_box["y"] + 15)
    page.mouse.down()
    page.mouse.move(kind_box["x"] - 20, kind_box["y"] + 15, steps=4)
    page.mouse.move(state_box["x"] + 10, kind_box["y"] + 15, steps=8)
    page.mouse.up()
    expect(page.locator("th[data-heading]").nth(1)).to_have_attribute("data-heading", "kind")
    expect(kind).not_to_have_attribute("aria-sort", re.compile("."))

    edge = page.get_by_role("separator", name="Width of State")
    edge.focus()
    before = width_of(state)
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(edge).to_have_attribute("aria-valuetext", f"{round(before) + 64} pixels")
    assert abs(width_of(state) - before - 64) < 2
    box = edge.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 5, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 45, box["y"] + 10, steps=4)
    page.mouse.up()
    expect(edge).to_have_attribute("aria-valuetext", f"{round(before) + 104} pixels")
    faults = faults_of(page, "run-table-moved")

    layout = headings(page)
    page.reload()
    expect(rows).to_have_count(50)
    assert headings(page) == layout
    # The browser keeps them, too, until they are reset.
    page.goto("/p/default/runs")
    expect(rows).to_have_count(50)
    assert headings(page) == layout
    expect(edge).to_have_attribute("aria-valuetext", f"{round(before) + 104} pixels")
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("button", name="Reset the columns").click()
    expect(page.locator("th[data-heading]").nth(1)).to_have_attribute("data-heading", "state")
    assert not faults, told(faults)


def test_the_head_and_the_name_stay_in_sight_both_ways(rows_page: Page, runs: int) -> None:
    page = rows_page
    page.set_viewport_size({"width": 1100, "height": 700})
    names = "%2C".join(f"%22{name}%22" for name in METRICS)
    page.goto(f"/p/default/runs?column=%5B{names}%5D")
    expect(page.locator("tbody tr[data-run]")).to_have_count(50)
    page.locator(".run-table").evaluate("frame => frame.scrollTo(400, 900)")
    name = page.get_by_role("columnheader", name="Run", exact=True)
    expect(name).to_be_in_viewport(ratio=1)
    head = page.get_by_role("columnheader", name="length")
    expect(head).to_be_in_viewport(ratio=1)
    # No row shines through the head, and no cell through the name.
    for part in (name, head, page.locator("tbody tr[data-run] .run-name").nth(25)):
        assert part.evaluate("one => getComputedStyle(one).backgroundColor").startswith("rgb(")
    faults = faults_of(page, "run-table-scrolled")
    assert not faults, told(faults)
