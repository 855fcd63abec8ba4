from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker

from steerboard.app.main import attach, create_app
from steerboard.platform.http.body_limits import JSON_BYTES
from steerboard.platform.settings import Settings
from support.servers.app_client import AppClient


@pytest.fixture(scope="module")
def made_to_fail() -> FastAPI:
    app = create_app(Settings(database_url="postgresql://nowhere"))

    @app.get("/api/v1/broken")
    def broken() -> None:
        raise RuntimeError("secret inside")

    @app.get("/api/v1/away")
    def away() -> None:
        raise OperationalError("select", {}, Exception("gone"))

    return app


@pytest.fixture
def failing(
    made_to_fail: FastAPI, settings: Settings, sessions: sessionmaker[Session], token: str
) -> Iterator[TestClient]:
    """Signed in, at an app with a bug and a route without its database."""
    attach(made_to_fail, settings, sessions)
    headers = {"Authorization": f"Bearer {token}"}
    with AppClient(made_to_fail, headers=headers, raise_server_exceptions=False) as client:
        yield client


def test_an_invalid_body_is_a_problem_document_that_names_the_field(client: TestClient) -> None:
    answer = client.post("/api/v1/projects", json={"name": "with space", "colour": "red"})
    problem = answer.json()
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["code"] == "invalid_request"
    assert {place["location"] for place in problem["errors"]} == {"body.name", "body.colour"}


def test_an_unknown_path_is_a_problem_document(client: TestClient) -> None:
    answer = client.get("/api/v1/nothing")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_an_unexpected_error_shows_no_inside(failing: TestClient) -> None:
    answer = failing.get("/api/v1/broken")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert "secret inside" not in answer.text


def test_a_large_json_body_is_refused_declared_or_not(client: TestClient) -> None:
    body = b'{"name": "' + b"x" * JSON_BYTES + b'"}'
    declared = client.post("/api/v1/projects", content=body, headers={"content-type": "application/json"})
    streamed = client.post("/api/v1/projects", content=iter([body]), headers={"content-type": "application/json"})
    assert [declared.status_code, streamed.status_code] == [413, 413]
    assert {declared.json()["code"], streamed.json()["code"]} == {"too_large"}


def test_only_uploads_may_be_large_and_only_by_somebody_known(app: FastAPI) -> None:
    body = b"x" * (JSON_BYTES + 1)
    form = {"content-type": "multipart/form-data; boundary=b"}
    with AppClient(app) as nobody:
        for kind in ("application/octet-stream", "multipart/form-data; boundary=b"):
            answer = nobody.post("/api/v1/session", content=body, headers={"content-type": kind})
            assert answer.status_code == 413, kind
        # A form that cannot be parsed: whether it was tried shows in the answer.
        for key in ({}, {"Idempotency-Key": "one"}):
            answer = nobody.post("/api/v1/projects/default/imports", content=body, headers={**form, **key})
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), key


def test_every_endpoint_that_takes_a_form_takes_a_large_one(client: TestClient) -> None:
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    with_form = [
        path
        for path, operations in paths.items()
        for operation in operations.values()
        if "multipart/form-data" in operation.get("requestBody", {}).get("content", {})
    ]
    form = {"content-type": "multipart/form-data; boundary=b"}
    assert with_form
    for path in with_form:
        url = path.replace("{project}", "default").replace("{dataset}", "d")
        assert client.post(url, content=b"x" * (JSON_BYTES + 1), headers=form).status_code == 400, path


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/projects/default/datasets/a%00b", None),
        ("GET", "/projects/default/datasets?name=%00", None),
        ("POST", "/projects/default/endpoints/%00/check", None),
        ("POST", "/projects/default/playground/comparisons", b'{"prompt": "a", "columns": [{"model": "\\u0000"}]}'),
        ("POST", "/session", b'{"user": "a", "password": "\\ud800"}'),
        ("POST", "/projects", b'{"name": "a", "\\ud800": 1}'),
    ],
)
def test_text_that_cannot_be_stored_is_the_callers_fault(
    client: TestClient, method: str, path: str, body: bytes | None
) -> None:
    headers = {"content-type": "application/json"} if body else {}
    answer = client.request(method, f"/api/v1{path}", content=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


def test_lists_are_read_page_by_page_without_gaps_or_doubles(client: TestClient) -> None:
    for number in range(7):
        client.post("/api/v1/projects", json={"name": f"p{number}"})
    seen: list[str] = []
    cursor = None
    while True:
        page = client.get("/api/v1/projects", params={"limit": 3, **({"cursor": cursor} if cursor else {})}).json()
        seen += [item["name"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == ["p6", "p5", "p4", "p3", "p2", "p1", "p0", "default"]


def test_a_foreign_cursor_is_refused(client: TestClient) -> None:
    for cursor in ("x", "bm90LWpzb24", "MTI"):
        answer = client.get("/api/v1/projects", params={"cursor": cursor})
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_cursor")


_REFUSED = {
    "unknown address": ("GET", "/api/v1/nothing", {}, 404),
    "no file": ("GET", "/assets/%00", {}, 404),
    "a long name": ("GET", "/assets/" + "a" * 5000, {}, 404),
    "another method": ("DELETE", "/api/v1/projects", {}, 405),
    "nobody": ("GET", "/api/v1/projects", {"headers": {"Authorization": ""}}, 401),
    "too large": ("POST", "/api/v1/session", {"content": b" " * 5000}, 413),
    "invalid": ("POST", "/api/v1/projects", {"json": {}}, 422),
    "a bug": ("GET", "/api/v1/broken", {}, 500),
    "no database": ("GET", "/api/v1/away", {}, 503),
}


@pytest.mark.parametrize(("method", "path", "more", "status"), _REFUSED.values(), ids=list(_REFUSED))
def test_errors_carry_the_security_headers_too(
    failing: TestClient, method: str, path: str, more: dict[str, Any], status: int
) -> None:
    answer = failing.request(method, path, **more)
    assert answer.status_code == status
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
    if path.startswith("/api/"):
        assert answer.headers["Cache-Control"] == "no-store"


def test_answers_carry_security_headers(client: TestClient) -> None:
    headers = client.get("/api/v1/projects").headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"


def test_openapi_describes_failures_as_problem_documents(client: TestClient) -> None:
    schema = client.get("/api/v1/openapi.json").json()
    responses = schema["paths"]["/api/v1/projects/{project}/tokens"]["post"]["responses"]
    for status in ("401", "403", "404", "409", "422"):
        content = responses[status]["content"]
        assert content["application/problem+json"]["schema"]["$ref"] == "#/components/schemas/Problem"
    ids = [operation["operationId"] for path in schema["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids))


def test_the_reference_of_the_api_asks_nobody_else(client: TestClient) -> None:
    answer = client.get("/docs")
    assert answer.status_code == 200
    assert "'unsafe-inline'" not in answer.headers["Content-Security-Policy"].partition("style-src")[0]
    assert re.findall(r"https?://|<script|@import", answer.text) == []
    described = client.get("/api/v1/openapi.json").json()
    for path, operations in described["paths"].items():
        for method in operations:
            assert f"<code>{method.upper()} {path}</code>" in answer.text
    named = set(re.findall(r'id="([^"]+)"', answer.text))
    assert set(re.findall(r'href="#([^"]+)"', answer.text)) <= named


def test_health_needs_no_token_and_names_the_part_that_is_ill(
    client: TestClient, settings: Settings, sessions: sessionmaker[Session]
) -> None:
    client.headers.pop("Authorization")
    well = client.get("/api/v1/system/health")
    assert (well.status_code, well.json()) == (
        200,
        {"status": "ok", "database": "ok", "redis": "ok", "artifacts": "ok", "disk": "ok"},
    )
    lonely = settings.model_copy(update={"redis_url": "redis://127.0.0.1:1"})
    with AppClient(create_app(lonely, sessions=sessions)) as other:
        answer = other.get("/api/v1/system/health")
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    dead = settings.model_copy(update={"database_url": "postgresql+psycopg://nobody@127.0.0.1:1/none"})
    with AppClient(create_app(dead)) as other:
        answer = other.get("/api/v1/system/health")
        assert (answer.status_code, answer.json()["database"]) == (503, "unavailable")
        refused = other.get("/api/v1/projects", headers={"Authorization": "Bearer x"})
        assert (refused.status_code, refused.json()["code"]) == (503, "database_unavailable")
