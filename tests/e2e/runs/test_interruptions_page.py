"""A run in the browser whose machine died."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.runs.state import attempt_outcomes
from steerboard.runs.state.attempt_outcomes import Failure
from support.rows.run_world import World


def test_a_runs_page_counts_interruptions_apart_from_failed_attempts(
    rows_page: Page, sessions: sessionmaker[Session], project: Project
) -> None:
    world = World(sessions, project)
    run_id = world.create("unlucky")
    crash = Failure("stage_crashed", "boom", retryable=True)
    claim = world.claim()
    assert claim is not None
    world.act(claim, lambda session, run: attempt_outcomes.fail(session, run, crash, 1.0, 0.0))
    for _ in range(2):
        assert world.claim() is not None
        world.let_lease_expire()
    rows_page.goto(f"/p/{project.name}/runs/{run_id}")
    expect(rows_page.get_by_text("Failed attempts").locator("..")).to_contain_text("1 of at most 3")
    expect(rows_page.get_by_text("Interruptions").locator("..")).to_contain_text("2 of at most 10")
