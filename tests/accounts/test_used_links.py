"""A used link leads a person to a page, and a program to a problem document."""

from __future__ import annotations

import datetime as dt
import html
import re

import pytest
from account_people import People
from fastapi.testclient import TestClient
from sqlalchemy import func, update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import SignInLink
from steerboard.platform.database import transaction

PAGE = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def link(client: TestClient) -> str:
    path: str = client.post("/api/v1/sign-in-links").json()["path"]
    return path


@pytest.mark.parametrize("site", [None, "none", "cross-site"])
@pytest.mark.parametrize("state", ["used", "expired", "unknown"])
def test_a_browser_with_a_link_that_ended_is_led_to_the_sign_in_page(
    people: People, sessions: sessionmaker[Session], link: str, state: str, site: str | None
) -> None:
    if state == "used":
        people.browser().client.post(link, follow_redirects=False)
    elif state == "expired":
        with transaction(sessions) as session:
            session.execute(update(SignInLink).values(expires_at=func.now() - dt.timedelta(seconds=1)))
    else:
        link += "x"
    browser = people.browser()
    headers = PAGE | ({"Sec-Fetch-Site": site} if site else {})
    answer = browser.client.get(link, headers=headers, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?problem=used_link")
    assert "set-cookie" not in answer.headers
    plain = browser.client.get(link, headers={"Accept": "application/json"}, follow_redirects=False)
    assert (plain.status_code, plain.json()["code"]) == (401, "link_used")


def test_the_button_of_a_link_that_was_used_meanwhile_leads_there_too(people: People, link: str) -> None:
    first, second = people.browser(), people.browser()
    here = PAGE | {"Origin": "http://testserver"}
    assert first.client.post(link, headers=here, follow_redirects=False).headers["location"] == "/"
    late = second.client.post(link, headers=here, follow_redirects=False)
    assert (late.status_code, late.headers["location"]) == (303, "/sign-in?problem=used_link")
    assert second.session() is None


@pytest.mark.parametrize(
    ("back", "leads_to"),
    [
        ("/p/default/pipelines/demo-1", "/p/default/pipelines/demo-1"),
        ("//elsewhere.example/p/x", "/"),
        ("https://elsewhere.example/p/", "/"),
        ("/p/\\elsewhere.example", "/"),
        ("/p/x%0d%0aLocation:%20https://elsewhere.example", "/"),
        ("", "/"),
    ],
)
def test_a_link_leads_on_to_pages_of_our_own_only(people: People, link: str, back: str, leads_to: str) -> None:
    browser = people.browser()
    page = browser.client.get(f"{link}?back={back}", headers=PAGE)
    action = re.search(r'<form method="post" action="([^"]*)">', page.text)
    assert action is not None
    answer = browser.client.post(html.unescape(action[1]), headers=PAGE, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, leads_to)
