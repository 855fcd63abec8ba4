"""The first page of a project in the browser: running and paused runs."""

from __future__ import annotations

from dataclasses import replace

from page_checks import faults_of, told
from playwright.sync_api import Page, expect
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.runs.tables import Pipeline
from support.rows.listed_runs import Listed, list_run


def test_an_evaluation_is_running_while_its_answers_are_made(
    rows_page: Page, sessions: sessionmaker[Session], project: Project
) -> None:
    stage = Listed("report", "demo-1", kind="evaluate", method=None, state="pending")
    with transaction(sessions) as session:
        begun = list_run(session, project, replace(stage, started=True))
        list_run(session, project, replace(stage, pipeline="demo-2"))
    page = rows_page
    page.goto("/p/default/runs")
    badges = page.get_by_role("table", name="Runs").locator("tbody .state-badge")
    expect(badges).to_have_text(["pending", "running"])
    page.goto(f"/p/default/runs/{begun}")
    expect(page.locator(".state-badge").first).to_have_text("running")


def test_a_paused_run_is_shown_with_who_paused_it_and_is_resumed_there(
    rows_page: Page, sessions: sessionmaker[Session], project: Project
) -> None:
    stages = [Listed("base", "demo-1"), Listed("online", "demo-1", method="rloo", state="paused")]
    with transaction(sessions) as session:
        made: dict[str, Pipeline] = {}
        for stage in (*stages, Listed("report", "demo-1", kind="evaluate", method=None, state="pending")):
            list_run(session, project, stage, made)
    page = rows_page
    page.goto("/p/default")
    run = page.get_by_role("table", name="Running and waiting").locator("tr[data-run=online]")
    expect(run).to_contain_text("paused")
    expect(run).to_contain_text("as it is")  # its reason
    pipelines = page.get_by_role("table", name="Pipelines, the newest first")
    pipeline = pipelines.get_by_role("row").filter(has_text="demo-1")
    expect(pipeline.locator(".state-badge")).to_have_text("paused")
    faults = faults_of(page, "home-paused")
    run.get_by_role("button", name="Resume demo-1.online").click()
    expect(run.locator(".state-badge")).to_have_text("queued")
    expect(pipeline.locator(".state-badge")).to_have_text("running")
    assert not faults, told(faults)
