"""The table of runs in the browser: its head and its names stay in sight."""

from __future__ import annotations

import pytest
from page_checks import faults_of, told
from playwright.sync_api import Page, expect
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
