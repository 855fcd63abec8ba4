"""The device-hours of a project on its page."""

from __future__ import annotations

import re

from fastapi import FastAPI
from page_checks import faults_of, told
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import select, update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import service
from steerboard.accounts.tables import Project, User
from steerboard.platform.database import transaction
from support.servers.served_app import served


def test_a_project_shows_its_quota_and_that_it_is_used_up(
    rows_page: Page, sessions: sessionmaker[Session], project: Project
) -> None:
    page = rows_page
    page.goto("/p/default/settings/project")
    expect(page.get_by_text(re.compile(r"^0 used since 1 \w+\. There is no quota\.$"))).to_be_visible()
    # An owner who is not the operator reads it only.
    expect(page.get_by_role("button", name="Set the quota")).to_have_count(0)
    with transaction(sessions) as session:
        session.execute(
            update(Project).where(Project.id == project.id).values(device_hours_quota=0, storage_bytes_quota=0)
        )
    page.reload()
    expect(page.get_by_text(re.compile("^0 of 0 used since"))).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="No run starts or resumes before")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="Nothing is imported, uploaded or started")).to_be_visible()
    faults = faults_of(page, "project-quota")
    assert not faults, told(faults)


def test_the_operator_sets_the_quota_of_a_project(
    dashboard: None, app: FastAPI, sessions: sessionmaker[Session], project: Project, browser: Browser
) -> None:
    with transaction(sessions) as session:
        operator = session.scalars(select(User).where(User.name == "owner")).one()
        code, _ = service.create_sign_in_link(session, operator.id)
    with served(app) as url:
        context = browser.new_context(base_url=url, bypass_csp=True)
        page = context.new_page()
        page.goto(f"/sign-in/{code}?back=/p/default/settings/project")
        page.get_by_role("button", name="Sign in").click()
        quota = page.get_by_label("Quota, in device-hours a month")
        expect(page.get_by_role("button", name="Set the quota")).to_be_disabled()
        quota.fill("500")
        page.get_by_role("button", name="Set the quota").click()
        expect(page.get_by_text(re.compile("of 500 used since"))).to_be_visible()
        faults = faults_of(page, "project-quota-operator")
        assert not faults, told(faults)
        quota.fill("")
        page.get_by_role("button", name="Set the quota").click()
        expect(page.get_by_text(re.compile(r"used since .* There is no quota\."))).to_be_visible()
        page.get_by_label("Storage quota, in GB").fill("1.5")
        page.get_by_role("button", name="Set the storage quota").click()
        expect(page.get_by_text("0 B of 1.5 GB used.")).to_be_visible()
        context.close()
