"""What a page of another site can make the browser of a signed-in person do: nothing."""

from __future__ import annotations

import pytest
from account_people import SESSION, UNSAFE, People, code_of, endpoints
from fastapi import FastAPI
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import service
from steerboard.accounts.http.routes import IdempotentRoute, UnkeptRoute
from steerboard.accounts.tables import User
from steerboard.platform.database import transaction

# These sign in, so there is no session yet whose token they could send; the origin decides.
SIGN_IN = {("POST", SESSION), ("POST", "/sign-in/{code}")}
ELSEWHERE = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://testserver:8080"},
    {"Origin": "http://testserver", "Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]
HERE = [
    {"Origin": "http://testserver"},
    {"Origin": "https://TESTSERVER:443"},
    {"Origin": "http://proxied.example", "Sec-Fetch-Site": "same-origin"},
]


@pytest.fixture
def link(sessions: sessionmaker[Session], people: People) -> str:
    with transaction(sessions) as session:
        user_id = session.scalars(select(User.id).where(User.name == "owner")).one()
        return f"/sign-in/{service.create_sign_in_link(session, user_id)[0]}"


def test_no_route_changes_anything_for_a_cookie_without_its_csrf_token(people: People, app: FastAPI) -> None:
    owner = people.add("ann", "owner")
    before = people.rows()
    walked = [endpoint for endpoint in endpoints(app) if endpoint.method in UNSAFE]
    assert len(walked) > 20
    assert {endpoint.method for endpoint in walked} == set(UNSAFE)
    for endpoint in walked:
        if (endpoint.method, endpoint.template) in SIGN_IN:
            continue
        for headers in ({}, {"X-CSRF-Token": "guess"}):
            refused = owner.client.request(endpoint.method, endpoint.path, headers=headers)
            assert (refused.status_code, code_of(refused)) == (403, "csrf_failed"), endpoint
    assert people.rows() == before


@pytest.mark.parametrize("headers", ELSEWHERE)
def test_another_site_changes_nothing_even_with_the_csrf_token(people: People, headers: dict[str, str]) -> None:
    owner = people.add("ann", "owner")
    csrf = {"X-CSRF-Token": owner.session()["csrf_token"]}
    refused = owner.client.post("/api/v1/projects", json={"name": "new"}, headers=csrf | headers)
    assert (refused.status_code, refused.json()["code"]) == (403, "cross_site")


@pytest.mark.parametrize("headers", HERE)
def test_our_own_page_changes_things_also_behind_a_proxy(people: People, headers: dict[str, str]) -> None:
    owner = people.add("ann", "owner")
    csrf = {"X-CSRF-Token": owner.session()["csrf_token"]}
    made = owner.client.post("/api/v1/projects", json={"name": "new"}, headers=csrf | headers)
    assert made.status_code == 201


@pytest.mark.parametrize("headers", ELSEWHERE)
def test_another_site_signs_nobody_in(people: People, link: str, headers: dict[str, str]) -> None:
    people.with_password("ann", "a long password")
    browser = people.browser()
    by_password = browser.sign_in("ann", "a long password", **headers)
    by_link = browser.client.post(link, headers=headers)
    for refused in (by_password, by_link):
        assert (refused.status_code, refused.json()["code"]) == (403, "cross_site")
        assert "set-cookie" not in refused.headers


def test_a_form_of_another_site_cannot_carry_a_password(people: People) -> None:
    people.with_password("ann", "a long password")
    body = '{"user": "ann", "password": "a long password"}'
    refused = people.browser().client.post(SESSION, content=body, headers={"Content-Type": "text/plain"})
    assert refused.status_code == 422


OPENING = [
    {},
    {"Accept": "application/json"},
    {"Accept": "text/html,*/*", "Sec-Fetch-Site": "none"},
    {"Accept": "text/html,*/*", "Sec-Fetch-Site": "same-origin"},
    {"Accept": "text/html,*/*", "Sec-Fetch-Site": "cross-site"},
]


@pytest.mark.parametrize("headers", OPENING)
def test_opening_a_link_uses_nothing_and_its_button_signs_in(
    people: People, link: str, headers: dict[str, str]
) -> None:
    """Chats, mail scanners and browsers that look ahead open links too."""
    people.browser().client.get(link, headers=headers)
    people.browser().client.head(link, headers=headers)
    browser = people.browser()
    before = people.rows()
    asked = browser.client.get(link, headers=headers)
    assert asked.status_code == 200
    assert "set-cookie" not in asked.headers
    assert f'<form method="post" action="{link}">' in asked.text
    assert "script" not in asked.text
    # Else the browser would hide the form's origin, and the button would be refused.
    assert asked.headers["Referrer-Policy"] == "same-origin"
    assert "form-action 'self'" in asked.headers["Content-Security-Policy"]
    assert people.rows() == before
    pressed = browser.client.post(link, headers={"Origin": "http://testserver"}, follow_redirects=False)
    assert pressed.status_code == 303
    assert browser.session()["user"] == "owner"


def test_every_post_that_makes_something_takes_an_idempotency_key(app: FastAPI) -> None:
    """The routes of `UnkeptRoute` ask another server how it is, change nothing, or may be sent again in a way of their
    own: rankings carry the browser's key of each submission."""
    unkept = set()
    for route in app.routes:
        included = getattr(route, "effective_route_contexts", None)
        for each in included() if included else []:
            if "POST" in each.methods:
                if isinstance(each.original_route, UnkeptRoute):
                    unkept.add(each.path.rpartition("/")[2])
                else:
                    assert isinstance(each.original_route, IdempotentRoute), each.path
    assert unkept == {"check", "completions", "fit", "test", "gate", "next", "submit", "skip", "undo"}
