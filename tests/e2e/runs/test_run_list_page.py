"""The list of runs in the browser: searched, filtered with a mistake and its answer, sorted, kept, changed."""

from __future__ import annotations

import re

import pytest
from page_checks import faults_of, told
from playwright.sync_api import Page, expect
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from support.rows.listed_runs import Listed, list_run

RUNS = [
    Listed("sft", "demo-1", settings={"lr": 1e-5}, metrics={"eval_loss": [2.0, 1.5]}, tags=("good",)),
    Listed("dpo", "demo-1", method="dpo", settings={"lr": 1e-4}, metrics={"eval_loss": [1.9, 1.1]}),
    Listed("alone", method="dpo", settings={"lr": 1e-4}, metrics={"eval_loss": [1.2, 0.9]}, notes="Watch the spike."),
    Listed("mixture", kind="mix", method=None, state="failed"),
]


@pytest.fixture
def runs(sessions: sessionmaker[Session], project: Project) -> dict[str, str]:
    """Ids by name."""
    with transaction(sessions) as session:
        made: dict[str, object] = {}
        return {one.name: str(list_run(session, project, one, made)) for one in RUNS}  # type: ignore[arg-type]


def shown(page: Page) -> list[str | None]:
    rows = page.locator("tbody tr[data-run]")
    return [row.get_attribute("data-run") for row in rows.all()]


def test_runs_are_found_sorted_kept_as_a_view_and_archived(rows_page: Page, runs: dict[str, str]) -> None:
    page = rows_page
    page.goto("/p/default/runs")
    rows = page.locator("tbody tr[data-run]")
    expect(rows).to_have_count(4)
    expect(page.get_by_role("link", name="demo-1.dpo")).to_be_visible()

    box = page.get_by_role("textbox", name="Search or filter")
    box.fill("spike")
    box.press("Enter")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("alone")

    box.fill("eval_los < 1.2")
    box.press("Enter")
    answer = page.get_by_role("alert").filter(has_text="no run has a field")
    expect(answer.locator("mark")).to_have_text("eval_los")
    # What matched before stays in sight.
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("alone")
    faults = faults_of(page, "run-filter-mistake")
    answer.get_by_role("button", name="Use eval_loss", exact=True).click()
    expect(rows).to_have_count(2)
    expect(box).to_have_value("eval_loss < 1.2")

    page.get_by_role("button", name="Columns").click()
    columns = page.get_by_role("dialog", name="Columns").get_by_role("combobox", name="Columns")
    columns.fill("eval_loss.m")
    page.get_by_role("option", name="eval_loss.min").click()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="eval_loss.min", exact=True).click()
    expect(page.get_by_role("columnheader", name="eval_loss.min")).to_have_attribute("aria-sort", "descending")
    expect(rows.first).to_have_attribute("data-run", "dpo")
    page.get_by_role("button", name="eval_loss.min", exact=True).click()
    expect(rows.first).to_have_attribute("data-run", "alone")
    expect(rows.first.locator("[data-column='eval_loss.min']")).to_have_text("0.9")
    faults |= faults_of(page, "run-list")

    page.get_by_role("button", name="Views").click()
    page.get_by_role("menuitem", name="Save or manage views").click()
    page.get_by_role("textbox", name="Name").fill("losses")
    page.get_by_role("button", name="Save the view").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    link = page.url
    page.goto("/p/default/runs")
    expect(rows).to_have_count(4)
    page.get_by_role("button", name="Views").click()
    page.get_by_role("menuitem", name="losses").click()
    expect(rows).to_have_count(2)
    page.goto(link)
    expect(rows.first.locator("[data-column='eval_loss.min']")).to_have_text("0.9")
    assert shown(page) == ["alone", "dpo"]

    page.get_by_role("checkbox", name="Select all that are shown").check()
    expect(page.get_by_role("button", name="Compare 2")).to_be_enabled()
    expect(page.get_by_role("button", name="Cancel runs")).to_be_visible()
    page.get_by_role("button", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("demo-1.dpo: it is a stage of a pipeline with demo-1.sft")
    expect(dialog.get_by_role("button", name="Delete 1 run")).to_be_enabled()
    faults |= faults_of(page, "run-deletion")
    dialog.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("button", name="Archive", exact=True).click()
    dialog.get_by_role("button", name="Archive 2 runs").click()
    expect(page.get_by_text("No run matches these filters")).to_be_visible()
    page.get_by_role("button", name="Show all").click()
    expect(rows).to_have_count(2)
    assert not faults, told(faults)


def test_a_run_is_tagged_and_its_notes_are_shown_formatted(rows_page: Page, runs: dict[str, str]) -> None:
    page = rows_page
    page.goto(f"/p/default/runs/{runs['dpo']}")
    expect(page.get_by_role("heading", level=1, name="demo-1.dpo")).to_be_visible()
    page.get_by_role("button", name="Add tags or notes").click()
    page.get_by_role("combobox", name="Tags").fill("keep")
    page.keyboard.press("Enter")
    page.get_by_role("textbox", name="Notes").fill("The **best** one <script>alert(1)</script>")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".notes strong")).to_have_text("best")
    expect(page.locator(".notes script")).to_have_count(0)
    star = page.get_by_role("button", name="Favourite demo-1.dpo")
    star.click()
    expect(star).to_have_attribute("aria-pressed", "true")
    faults = faults_of(page, "run-notes")
    page.goto("/p/default/runs?filter=tag%3Akeep+is%3Afavourite")
    expect(page.locator("tbody tr[data-run]")).to_have_count(1)
    assert not faults, told(faults)


def test_everything_is_found_by_one_key(rows_page: Page, runs: dict[str, str]) -> None:
    page = rows_page
    page.goto("/p/default/runs")
    expect(page.locator("tbody tr[data-run]")).to_have_count(4)
    page.keyboard.press("Control+K")
    page.get_by_role("textbox", name="Go to").fill("spike")
    page.get_by_role("button", name=re.compile("^alone")).click()
    page.wait_for_url(f"**/runs/{runs['alone']}")


def test_long_names_take_two_lines_at_most_and_the_head_of_the_table_stays_in_sight(
    rows_page: Page, sessions: sessionmaker[Session], project: Project
) -> None:
    name, metrics = "reward-model-of-the-second-round-" + "x" * 60, {"loss": [1.5], "eval_loss": [1.25], "kl": [0.125]}
    with transaction(sessions) as session:
        for number in range(8):
            list_run(session, project, Listed(f"{name}-{number}", metrics=metrics, seconds=170))
    page = rows_page
    page.set_viewport_size({"width": 1440, "height": 420})
    page.goto("/p/default/runs?column=%5B%22loss%22%2C%22eval_loss%22%2C%22kl%22%5D")
    rows = page.locator("tbody tr[data-run]")
    expect(rows).to_have_count(8)
    expect(rows.first.get_by_title(f"{name}-7")).to_be_visible()
    heights = {box["height"] for row in rows.all() if (box := row.bounding_box())}
    assert max(heights) < 75  # two lines
    faults = faults_of(page, "run-list-long-names")
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    head = page.get_by_role("columnheader", name="Duration")
    expect(head).to_be_in_viewport(ratio=1)
    assert not faults, told(faults)
