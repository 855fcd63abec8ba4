"""The page of a run from top to bottom, and a run without results in a comparison."""

from __future__ import annotations

import re

import pytest
from page_checks import faults_of, told
from playwright.sync_api import Page, expect
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.runs.tables import Metric
from support.rows.listed_runs import Listed, list_run

FIGURES = {"held_out_accuracy": 0.69, "eval_pair_accuracy": 0.69, "eval_loss": 0.61}
RUNS = [
    Listed("reward", method="reward_model", metrics={"eval_loss": [0.7, 0.61]}, results=FIGURES, seconds=60),
    Listed("broken", method="reward_model", state="failed", seconds=1.2),
    Listed("waits", method="reward_model", metrics={"eval_loss": [0.8, 0.75]}, state="paused", seconds=60),
]


@pytest.fixture
def runs(sessions: sessionmaker[Session], project: Project) -> dict[str, str]:
    """Ids by name."""
    with transaction(sessions) as session:
        ids = {one.name: list_run(session, project, one) for one in RUNS}
        session.add(Metric(run_id=ids["waits"], name="eval_loss", step=2, value=0.75, attempt=1))
        return {name: str(run) for name, run in ids.items()}


def test_results_come_before_charts_and_comments_come_last(rows_page: Page, runs: dict[str, str]) -> None:
    page = rows_page
    page.goto(f"/p/default/runs/{runs['reward']}")
    figure = page.get_by_text("held out accuracy")
    expect(figure).to_be_visible()
    # The same figure by its other name.
    expect(page.get_by_text("eval pair accuracy")).to_have_count(0)
    parts = [
        figure,
        page.get_by_role("tablist"),
        page.get_by_role("button", name="Add tags or notes"),
        page.get_by_role("textbox", name=re.compile("comment", re.IGNORECASE)),
    ]
    faults = faults_of(page, "run-order")
    page.set_viewport_size({"width": 390, "height": 844})
    tops = [box["y"] for part in parts if (box := part.bounding_box())]
    assert len(tops) == len(parts)
    assert tops == sorted(tops)
    assert not faults, told(faults)


def test_a_paused_run_is_compared_by_what_it_has_measured_so_far(rows_page: Page, runs: dict[str, str]) -> None:
    page = rows_page
    page.goto(f'/p/default/compare?runs=%5B"{runs["reward"]}"%2C"{runs["waits"]}"%5D')
    table = page.get_by_role("table", name="Settings and results of the runs")
    loss = table.get_by_role("row", name=re.compile("^eval loss"))
    expect(loss).to_contain_text("0.75 so far")
    faults = faults_of(page, "compare-so-far")
    assert not faults, told(faults)


def test_a_run_that_kept_nothing_is_retried_and_a_paused_one_resumed(rows_page: Page, runs: dict[str, str]) -> None:
    page = rows_page
    for name, words, other in (("broken", "Retry", "Resume"), ("waits", "Resume", "Retry")):
        page.goto(f"/p/default/runs/{runs[name]}")
        expect(page.get_by_role("button", name=words, exact=True)).to_be_visible()
        expect(page.get_by_role("button", name=other, exact=True)).to_have_count(0)
    page.goto(f"/p/default/runs/{runs['broken']}")
    page.get_by_role("button", name="Retry", exact=True).click()
    expect(page.locator(".state-badge").first).to_have_text("queued")
