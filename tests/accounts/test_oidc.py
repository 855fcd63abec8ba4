"""Signing in at an OpenID provider, a real one that runs here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import oidc_provider_mock
import pytest
from account_people import Browser, People
from fastapi import FastAPI
from pydantic import SecretStr
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import service
from steerboard.accounts.tables import Identity
from steerboard.platform.database import transaction
from steerboard.platform.settings import GroupRole
from support.servers.other_server import Answer, other_server

PAGE = {"Accept": "text/html"}
MEMBERS = "/api/v1/projects/default/members"
ANNA = {
    "preferred_username": "anna",
    "email": "Anna@example.com",
    "email_verified": True,
    "groups": ["ml-team", "everyone-else"],
}


@pytest.fixture
def provider(app: FastAPI) -> Iterator[str]:
    with oidc_provider_mock.run_server_in_thread() as server:
        issuer = f"http://localhost:{server.server_port}"
        settings = app.state.settings
        settings.oidc_issuer, settings.oidc_name = issuer, "Keycloak"
        settings.oidc_client_id, settings.oidc_client_secret = "board", SecretStr("hush")
        settings.public_url = "http://testserver"
        settings.oidc_roles = [
            GroupRole(group="ml-team", project="default", role="engineer"),
            GroupRole(group="ml-leads", project="default", role="owner"),
        ]
        yield issuer


def person(provider: str, subject: str, **claims: Any) -> None:
    httpx.put(f"{provider}/users/{subject}", json=claims).raise_for_status()


def at_provider(browser: Browser, subject: str, back: str = "") -> str:
    """Go there, and sign in. Returns where the provider sends the browser."""
    begun = browser.client.get("/sign-in/oidc", params={"back": back}, headers=PAGE, follow_redirects=False)
    assert begun.status_code == 303, begun.text
    answer = httpx.post(begun.headers["location"], data={"sub": subject})
    assert answer.status_code == 302, answer.text
    return str(answer.headers["location"])


def come_back(browser: Browser, address: str) -> httpx.Response:
    parts = urlsplit(address)
    return browser.client.get(f"{parts.path}?{parts.query}", headers=PAGE, follow_redirects=False)


def sign_in(browser: Browser, subject: str, back: str = "") -> httpx.Response:
    return come_back(browser, at_provider(browser, subject, back))


def test_the_first_sign_in_makes_a_member_with_the_role_of_the_groups(people: People, provider: str) -> None:
    person(provider, "a1", **ANNA)
    browser = people.browser()
    assert browser.client.get("/api/v1/sign-in-methods").json() == {"oidc": "Keycloak"}
    answer = sign_in(browser, "a1", back="/p/default/runs")
    assert (answer.status_code, answer.headers["location"]) == (303, "/p/default/runs")
    session = browser.session()
    assert (session["user"], [(each["name"], each["role"]) for each in session["projects"]]) == (
        "anna",
        [("default", "engineer")],
    )
    # A second time it is the same account, under whatever name.
    person(provider, "a1", **ANNA | {"preferred_username": "anna.b"})
    again = people.browser()
    sign_in(again, "a1")
    assert again.session()["user"] == "anna"
    owner = people.add("olga", "owner")
    (member,) = [each for each in owner.client.get(MEMBERS).json()["items"] if each["user"] == "anna"]
    assert (member["role"], member["by_groups"]) == ("engineer", True)


def test_the_request_carries_state_nonce_and_a_challenge(people: People, provider: str) -> None:
    begun = people.browser().client.get("/sign-in/oidc", headers=PAGE, follow_redirects=False)
    asked = {name: values[0] for name, values in parse_qs(urlsplit(begun.headers["location"]).query).items()}
    assert asked["code_challenge_method"] == "S256"
    assert min(len(asked[name]) for name in ("state", "nonce", "code_challenge")) >= 20
    assert (asked["response_type"], asked["redirect_uri"]) == ("code", "http://testserver/sign-in/oidc/callback")
    cookie = begun.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert asked["state"] not in cookie


def test_roles_follow_the_groups_and_leave_what_an_owner_decided(people: People, provider: str) -> None:
    owner = people.add("olga", "owner")
    browser = people.browser()

    def role_with(*groups: str) -> str | None:
        person(provider, "a1", **ANNA | {"groups": list(groups)})
        sign_in(browser, "a1")
        roles = {each["user"]: each["role"] for each in owner.client.get(MEMBERS).json()["items"]}
        return roles.get("anna")

    assert role_with("ml-team") == "engineer"
    assert role_with("ml-team", "ml-leads") == "owner"
    assert role_with("ml-team") == "engineer"
    assert role_with("another") is None
    assert role_with("ml-team") == "engineer"
    assert owner.send("PATCH", f"{MEMBERS}/anna", {"role": "viewer"}).json()["by_groups"] is False
    assert role_with("ml-leads") == "viewer"
    assert role_with("another") == "viewer"


def test_the_last_owner_stays_when_their_group_goes(
    people: People, provider: str, app: FastAPI, sessions: sessionmaker[Session]
) -> None:
    with transaction(sessions) as session:
        service.create_project(session, "second", 0.1)
    app.state.settings.oidc_roles = [GroupRole(group="ml-leads", project="second", role="owner")]
    person(provider, "a1", **ANNA | {"groups": ["ml-leads"]})
    browser = people.browser()
    sign_in(browser, "a1")
    person(provider, "a1", **ANNA | {"groups": []})
    sign_in(browser, "a1")
    assert [(each["name"], each["role"]) for each in browser.session()["projects"]] == [("second", "owner")]


def test_an_account_is_linked_by_a_verified_address_alone_and_its_old_ways_in_end(
    people: People, provider: str
) -> None:
    owner = people.add("olga", "owner")
    given = {"user": "anna-of-hr", "role": "annotator", "email": "anna@example.com"}
    added = owner.send("POST", MEMBERS, given).json()
    early = people.browser()
    early.client.post(added["sign_in"]["path"], follow_redirects=False)
    assert early.session()["user"] == "anna-of-hr"

    person(provider, "mallory", **ANNA | {"email_verified": False, "preferred_username": "mallory"})
    mallory = people.browser()
    sign_in(mallory, "mallory")
    assert mallory.session()["user"] == "mallory"

    person(provider, "a1", **ANNA)
    browser = people.browser()
    sign_in(browser, "a1")
    session = browser.session()
    # The role that an owner gave stays; the groups' rule does not change it.
    assert (session["user"], session["projects"][0]["role"]) == ("anna-of-hr", "annotator")
    assert early.session() is None or early.client.get(MEMBERS).status_code == 401
    taken = owner.send("POST", MEMBERS, given | {"user": "other"}).json()
    assert taken["code"] == "email_taken"


def test_no_one_becomes_the_operator_or_another_by_a_name(
    people: People, provider: str, sessions: sessionmaker[Session]
) -> None:
    people.add("anna", "owner")
    for subject, name in (("x", "owner"), ("y", "anna"), ("z", "../ä n/na@evil")):
        person(provider, subject, preferred_username=name, groups=["ml-team"])
        browser = people.browser()
        sign_in(browser, subject)
        assert browser.session()["user"] not in ("owner", "anna")
        assert not browser.session()["is_operator"]
    with sessions() as session:
        assert len(session.scalars(select(Identity.user_id)).all()) == 3


@pytest.mark.parametrize("change", ["state", "code", "cookie", "denied"])
def test_a_return_that_does_not_belong_to_the_browser_signs_no_one_in(
    people: People, provider: str, change: str
) -> None:
    person(provider, "a1", **ANNA)
    browser = people.browser()
    address = at_provider(browser, "a1")
    if change == "cookie":  # someone else's return, as in a forged sign-in
        browser = people.browser()
    elif change == "denied":
        state = parse_qs(urlsplit(address).query)["state"][0]
        address = f"/sign-in/oidc/callback?error=access_denied&state={state}"
    else:
        address = address.replace(f"{change}=", f"{change}=x")
    answer = come_back(browser, address)
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?problem=oidc_failed")
    assert browser.session() is None
    parts = urlsplit(address)
    plain = browser.client.get(f"{parts.path}?{parts.query}", follow_redirects=False)
    assert (plain.status_code, plain.json()["code"]) == (401, "oidc_failed")


def test_a_code_works_once(people: People, provider: str) -> None:
    person(provider, "a1", **ANNA)
    browser = people.browser()
    address = at_provider(browser, "a1")
    cookies = dict(browser.client.cookies)
    assert come_back(browser, address).headers["location"] == "/"
    other = people.browser()
    other.client.cookies.update(cookies)
    assert come_back(other, address).headers["location"] == "/sign-in?problem=oidc_failed"


def test_no_one_is_led_to_another_site_afterwards(people: People, provider: str) -> None:
    person(provider, "a1", **ANNA)
    assert sign_in(people.browser(), "a1", back="https://evil.example/p/").headers["location"] == "/"


def test_a_provider_of_another_name_is_not_asked(people: People, provider: str, app: FastAPI) -> None:
    with other_server() as liar:
        document = {"issuer": provider, "authorization_endpoint": f"{provider}/oauth2/authorize"}
        liar.answer = lambda _: Answer.json(document)
        app.state.settings.oidc_issuer = liar.url
        answer = people.browser().client.get("/sign-in/oidc", headers=PAGE, follow_redirects=False)
    assert answer.headers["location"] == "/sign-in?problem=oidc_failed"


def test_without_a_provider_there_is_no_such_way_in(people: People) -> None:
    browser = people.browser()
    assert browser.client.get("/api/v1/sign-in-methods").json() == {"oidc": None}
    assert browser.client.get("/sign-in/oidc", follow_redirects=False).status_code == 404
