"""Notices in the browser: the bell, and rules by webhook, Slack and e-mail."""

from __future__ import annotations

import re

import pytest
from page_checks import faults_of, told
from playwright.sync_api import Page, expect
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.notices import feed
from steerboard.platform.database import transaction


@pytest.mark.parametrize("width", [390, 1440])
def test_a_slack_channel_is_told_of_failures_in_a_daily_digest(rows_page: Page, width: int) -> None:
    page = rows_page
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/p/default/settings/notices")
    page.get_by_role("button", name="Create a rule").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill(f"team-{width}")
    expect(dialog.get_by_role("button", name="Create", exact=True)).to_be_disabled()
    dialog.get_by_text("Slack", exact=True).click()
    # A name that is never resolved, so nothing leaves this machine.
    dialog.get_by_label("URL").fill("https://slack.invalid/services/of-the-channel")
    dialog.get_by_role("combobox", name="Send").click()
    page.get_by_role("option", name="One message a day").click()
    dialog.get_by_label(re.compile(r"^At\W*$")).fill("08:30")
    dialog.get_by_role("switch", name="Quiet hours").click(force=True)
    dialog.get_by_label(re.compile(r"^From\W*$")).fill("21:00")
    dialog.get_by_role("checkbox", name="gate.failed").check()
    faults = faults_of(page, f"notice-rule-form-{width}")
    dialog.get_by_role("button", name="Create", exact=True).click()
    expect(dialog).to_be_hidden()
    card = page.locator(f"[data-name=team-{width}]")
    expect(card).to_contain_text("https://slack.invalid/…")
    expect(card).to_contain_text("One message a day at 08:30, quiet from 21:00 to 07:00")
    expect(card).to_contain_text("gate.failed")
    page.get_by_role("button", name=f"Send a test to team-{width}").click()
    expect(card.get_by_role("status")).to_contain_text("The test did not arrive")
    faults |= faults_of(page, f"notice-rules-{width}")
    assert not faults, told(faults)

    # The channel's address stays as it is while the form does not give another.
    page.get_by_role("button", name=f"Change team-{width}").click()
    dialog.get_by_role("checkbox", name="gate.failed").uncheck()
    dialog.get_by_role("button", name="Save").click()
    expect(card).not_to_contain_text("gate.failed")
    expect(card).to_contain_text("https://slack.invalid/…")
    page.get_by_role("button", name=f"Delete team-{width}").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(card).to_have_count(0)


def test_a_server_without_smtp_says_what_its_operator_sets(rows_page: Page) -> None:
    page = rows_page
    page.goto("/p/default/settings/notices")
    page.get_by_role("button", name="Create a rule").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("people")
    dialog.get_by_text("E-mail", exact=True).click()
    recipients = dialog.get_by_role("combobox", name="Recipients")
    recipients.fill("anna@example.com")
    recipients.press("Enter")
    dialog.get_by_role("button", name="Create", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("STEERBOARD_SMTP_HOST")


@pytest.mark.parametrize("width", [390, 1440])
def test_the_bell_counts_what_is_new_leads_to_it_and_forgets_what_was_seen(
    rows_page: Page, sessions: sessionmaker[Session], project: Project, width: int
) -> None:
    def tell(event: str, **data: object) -> None:
        with transaction(sessions) as session:
            feed.add(session, session.get_one(Project, project.id), event, {"path": "/settings/notices", **data})

    page = rows_page
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/p/default/datasets")
    page.get_by_role("button", name="Notices", exact=True).click()
    dialog = page.get_by_role("dialog", name="Notices")
    expect(dialog).to_contain_text("Nothing has happened in the last month.")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()

    # The open page follows.
    tell("run.failed", name="dpo-7", reason="CUDA out of memory")
    tell("comment.mention", name="run sft-1", author="ada", mentioned=["ann"], reason="Is this the right split?")
    bell = page.get_by_role("button", name="Notices, 2 unread")
    bell.click()
    lines = dialog.get_by_role("listitem")
    expect(lines).to_have_count(2)
    expect(lines.first).to_contain_text("Unread: ada mentions @ann on run sft-1")
    expect(lines.last).to_contain_text("CUDA out of memory")
    faults = faults_of(page, f"bell-{width}")
    dialog.get_by_text("Mentions (1)").click()
    expect(lines).to_have_count(1)
    dialog.get_by_text("All", exact=True).click()
    dialog.get_by_role("link", name=re.compile("Run dpo-7 failed")).click()
    expect(page).to_have_url(re.compile("/settings/notices$"))
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Notices", exact=True).click()
    expect(lines).to_have_count(2)
    expect(dialog.get_by_text("Unread:")).to_have_count(0)
    assert not faults, told(faults)
