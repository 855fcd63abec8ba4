"""Strangers and people of other projects at every route and method, as the app itself lists them: a new route is tried
without anyone having to think of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from account_people import Browser, Endpoint, People, code_of, endpoints
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker
from tenant_world import Bodies, foreign, masked, own, parameters, project_routes, send

from steerboard.accounts import service
from steerboard.accounts.http import event_stream
from steerboard.platform.database import transaction
from steerboard.platform.storage.artifacts import ArtifactStore
from support.rows.one_of_everything import SHARED, Things, fill
from support.servers.app_client import AppClient

# Everything that answers without an account. What is added here is public to the world.
PUBLIC = {
    ("GET", "/api/v1/openapi.json"),
    ("GET", "/docs"),
    ("GET", "/api/v1/system/live"),
    ("GET", "/api/v1/system/health"),
    ("GET", "/metrics"),  # in production only with a token of its own
    ("POST", "/api/v1/session"),  # signing in
    ("GET", "/api/v1/session"),  # null for those who have not
    ("GET", "/sign-in/{code}"),
    ("POST", "/sign-in/{code}"),
    ("GET", "/api/v1/sign-in-methods"),
    ("GET", "/sign-in/oidc"),
    ("GET", "/sign-in/oidc/callback"),
    ("GET", "/shared/{code}"),  # the report behind a link
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
# Where what the description asks for does not yet make a request.
BODIES: dict[tuple[str, str], Any] = {
    ("PATCH", "/runs/{run}"): {"priority": 1},
    ("POST", "/runs/{run}/change"): {"config": {"lr": 1e-6}},
    ("POST", "/datasets/{dataset}/edits"): {"drop": [0]},
    ("PUT", "/datasets/{dataset}/review/rows/{number}/change"): {"action": "remove"},
    ("POST", "/datasets/{dataset}/rewards/weighted"): {"name": "sum", "weights": {"reward": 1.0}},
    ("POST", "/datasets/{dataset}/push"): {"repo": "org/name"},
    ("POST", "/models/{model}/push"): {"repo": "org/name"},
    ("POST", "/evaluations/{evaluation}/entrants"): {"model": "policy"},
    ("POST", "/evaluations/{evaluation}/preferences"): {"name": "pairs", "from": [{"judge": "judge"}]},
    ("POST", "/evaluations/{evaluation}/preferences/preview"): {"from": [{"judge": "judge"}]},
}
STRANGERS = [
    ({}, "unauthenticated"),
    ({"Authorization": "Bearer sbt_guess"}, "invalid_token"),
    ({"Cookie": "steerboard_session=guess"}, "session_ended"),
]


@pytest.fixture
def things(
    people: People, sessions: sessionmaker[Session], store: ArtifactStore, tmp_path: Path
) -> tuple[Things, Things]:
    """Mine, in the project `default` of `mia`; theirs, in `elsewhere` of `theo`."""
    with transaction(sessions) as session:
        elsewhere = service.create_project(session, "elsewhere", 0.1)
        made = [
            fill(session, store, place, tmp_path, who) for place, who in ((people.project, "mia"), (elsewhere, "theo"))
        ]
    return made[0], made[1]


@pytest.fixture
def bodies(app: FastAPI) -> Bodies:
    return Bodies(app, BODIES)


@pytest.fixture
def mia(people: People, things: tuple[Things, Things], client: TestClient) -> TestClient:
    """Signed in, as the dashboard is."""
    browser = Browser(people.enter_context(AppClient(people.app, raise_server_exceptions=False)))
    link = client.post("/api/v1/projects/default/members/mia/sign-in-link").json()["path"]
    browser.client.post(link, follow_redirects=False)
    browser.client.headers["X-CSRF-Token"] = browser.session()["csrf_token"]
    return browser.client


@pytest.fixture(autouse=True)
def _streams_end_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "LIFE_SECONDS", 0.0)


def test_every_parameter_of_a_path_is_known_to_these_tests(app: FastAPI, things: tuple[Things, Things]) -> None:
    """Else the path would have nothing real: give `tenant_world.fill` one of the new things."""
    names = {name for endpoint in endpoints(app) for name in parameters(endpoint)}
    assert names == set(SHARED) | set(things[0].refs)


def test_what_is_public_is_there(app: FastAPI) -> None:
    assert {(endpoint.method, endpoint.template) for endpoint in endpoints(app)} >= PUBLIC


def test_a_stranger_is_refused_at_every_route_and_changes_nothing(
    app: FastAPI, people: People, things: tuple[Things, Things], bodies: Bodies
) -> None:
    stranger = people.browser().client
    before = people.rows()
    walked = [endpoint for endpoint in endpoints(app) if (endpoint.method, endpoint.template) not in PUBLIC]
    assert len(walked) > 120
    for endpoint in walked:
        call = own(endpoint, things[1])
        for headers, code in STRANGERS:
            refused = stranger.request(endpoint.method, call.path, headers=headers)
            assert (refused.status_code, code_of(refused)) == (401, code), endpoint
        retried = stranger.request(endpoint.method, call.path, headers={"Idempotency-Key": "k"}, **bodies.of(endpoint))
        assert retried.status_code == 401, endpoint
    assert people.rows() == before


@pytest.mark.long
def test_a_method_that_a_path_does_not_have_answers_nobody(
    app: FastAPI, people: People, things: tuple[Things, Things]
) -> None:
    """HEAD gets no answer either where a GET would be refused."""
    stranger = people.browser().client
    known = {(endpoint.method, endpoint.template) for endpoint in endpoints(app)}
    open_to_all = {template for _, template in PUBLIC}
    for template in {template for _, template in known} - open_to_all:
        for method in METHODS:
            if (method, template) not in known:
                call = own(Endpoint(method, template), things[1])
                answer = stranger.request(method, call.path)
                assert answer.status_code in (401, 404, 405), (method, template)


@pytest.mark.long
def test_another_projects_things_answer_like_things_that_are_not(
    app: FastAPI, people: People, mia: TestClient, things: tuple[Things, Things], bodies: Bodies
) -> None:
    mine, theirs = things
    before = people.rows()
    tried, told_apart, leaks = 0, [], []
    for endpoint in project_routes(app):
        for there, absent in foreign(endpoint, mine, theirs):
            tried += 1
            answer, other = (masked(call, send(mia, bodies, call)) for call in (there, absent))
            # What is not an id is refused for its spelling, in words that depend on it.
            if answer != other and {answer[0], other[0]} != {422}:
                told_apart.append((there.endpoint, there.refs, answer, other))
            # Where only ids are taken, what is none is not even looked for.
            if answer[0] != 404 and (there.by_id or answer[0] != 422):
                leaks.append((there.endpoint, answer))
    assert tried > 300
    assert told_apart == []
    assert leaks == []
    assert people.rows() == before


def test_a_token_of_one_project_finds_nothing_of_another(
    app: FastAPI, people: People, client: TestClient, things: tuple[Things, Things], bodies: Bodies
) -> None:
    made = client.post("/api/v1/projects/default/tokens", json={"name": "bound", "scopes": ["admin"]}).json()
    bots = people.browser().client
    bots.headers["Authorization"] = f"Bearer {made['token']}"
    for endpoint in project_routes(app):
        answer = send(bots, bodies, own(endpoint, things[1]))
        assert (answer.status_code, code_of(answer)) == (404, "not_found"), endpoint
