"""Signing in at an OpenID provider, in the browser."""

from __future__ import annotations

import re

import httpx
import oidc_provider_mock
from fastapi import FastAPI
from page_checks import faults_of, told
from playwright.sync_api import Browser, expect
from pydantic import SecretStr
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.settings import GroupRole
from support.servers.served_app import served


def test_a_person_of_a_group_comes_in_by_the_provider_to_the_page_they_wanted(
    dashboard: None, app: FastAPI, sessions: sessionmaker[Session], project: Project, browser: Browser
) -> None:
    with oidc_provider_mock.run_server_in_thread() as provider, served(app) as url:
        issuer = f"http://localhost:{provider.server_port}"
        settings = app.state.settings
        settings.public_url, settings.oidc_issuer, settings.oidc_name = url, issuer, "Keycloak"
        settings.oidc_client_id, settings.oidc_client_secret = "board", SecretStr("hush")
        settings.oidc_roles = [GroupRole(group="ml-team", project="default", role="engineer")]
        claims = {"preferred_username": "anna", "groups": ["ml-team"]}
        httpx.put(f"{issuer}/users/a1", json=claims).raise_for_status()
        context = browser.new_context(base_url=url, bypass_csp=True)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.goto("/p/default/runs")
        expect(page.get_by_role("link", name="Sign in with Keycloak")).to_be_visible()
        faults = faults_of(page, "sign-in-oidc")
        assert not faults, told(faults)
        page.get_by_role("link", name="Sign in with Keycloak").click()
        page.wait_for_url(re.compile("/oauth2/authorize"))
        page.locator("input[name=sub]").fill("a1")
        page.locator("button[type=submit], button").first.click()
        page.wait_for_url(re.compile("/p/default/runs"))
        expect(page.get_by_role("heading", level=1, name="Runs")).to_be_visible()
        page.goto("/p/default/settings/members")
        expect(page.locator("tr[data-member=anna]")).to_contain_text("by groups")
        context.close()
