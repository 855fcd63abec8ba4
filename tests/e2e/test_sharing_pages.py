"""A comparison of runs that is shared by a link, and the comments of a run."""

from __future__ import annotations

import pytest
from page_checks import faults_of, told, too_wide
from playwright.sync_api import Page, expect
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import members
from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.runs.tables import Metric
from support.rows.listed_runs import Listed, list_run


@pytest.fixture
def runs(sessions: sessionmaker[Session], project: Project) -> list[str]:
    """The ids of two runs with a curve each; `bob` is a member."""
    made = []
    with transaction(sessions) as session:
        members.add(session, project, "bob", "viewer")
        for name, rate in (("slow", 0.001), ("fast", 0.01)):
            listed = Listed(name=name, settings={"lr": rate}, results={"eval_loss": rate * 50}, seconds=60)
            run = list_run(session, project, listed)
            made.append(str(run))
            for step in range(1, 30):
                session.add(Metric(run_id=run, name="loss", step=step, value=1 / (1 + step * rate * 50), attempt=1))
    return made


def test_a_comparison_is_shared_and_revoked(rows_page: Page, runs: list[str]) -> None:
    page = rows_page
    page.goto(f'/p/default/compare?runs=["{runs[0]}","{runs[1]}"]')
    page.get_by_role("button", name="Share").click()
    dialog = page.get_by_role("dialog", name="Share the comparison")
    dialog.get_by_role("button", name="Create a link").click()
    expect(dialog.get_by_role("list", name="Active links")).to_contain_text("slow / fast")
    address = dialog.get_by_label("Link", exact=True).input_value()
    faults = faults_of(page, "share-comparison")
    assert not faults, told(faults)
    assert page.context.browser is not None
    visitor = page.context.browser.new_context(bypass_csp=True).new_page()
    visitor.goto(address)
    expect(visitor.get_by_role("heading", name="slow / fast")).to_be_visible()
    expect(visitor.get_by_role("img", name="loss")).to_be_visible()
    shots = too_wide(visitor, "shared-comparison")
    assert not shots, told(shots)
    dialog.get_by_role("button", name="Revoke").click()
    expect(dialog.get_by_text("There are no active links.")).to_be_visible()
    visitor.reload()
    expect(visitor.get_by_role("heading", name="There is nothing here")).to_be_visible()
    visitor.context.close()


def test_a_comment_names_a_member_and_is_edited_and_deleted(rows_page: Page, runs: list[str]) -> None:
    page = rows_page
    page.goto(f"/p/default/runs/{runs[0]}")
    thread = page.get_by_role("region", name="Comments")
    box = thread.get_by_label("Comment on this run")
    box.press_sequentially("**Look**, @bo")
    thread.get_by_role("button", name="@bob").click()
    expect(box).to_have_value("**Look**, @bob ")
    box.press_sequentially("please")
    thread.get_by_role("button", name="Comment", exact=True).click()
    expect(thread.locator("strong", has_text="Look")).to_be_visible()
    expect(box).to_have_value("")
    faults = faults_of(page, "comments")
    assert not faults, told(faults)
    thread.get_by_role("button", name="Edit your comment").click()
    thread.get_by_label("Edit the comment").fill("Seen")
    thread.get_by_role("button", name="Save").click()
    expect(thread.get_by_text("Seen")).to_be_visible()
    expect(thread.get_by_text(", edited")).to_be_visible()
    thread.get_by_role("button", name="Delete the comment of ann").click()
    expect(thread.get_by_text("Seen")).to_have_count(0)
