from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from fastapi.testclient import TestClient
from sqlalchemy import Engine, text

PROJECTS = "/api/v1/projects"


def names(client: TestClient) -> list[str]:
    return sorted(item["name"] for item in client.get(PROJECTS).json()["items"])


def test_a_retry_gets_the_first_answer_and_creates_nothing(client: TestClient) -> None:
    headers = {"Idempotency-Key": "one"}
    first = client.post(PROJECTS, json={"name": "alpha"}, headers=headers)
    again = client.post(PROJECTS, json={"name": "alpha"}, headers=headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    assert names(client) == ["alpha", "default"]


def test_the_same_key_with_another_body_is_refused(client: TestClient) -> None:
    headers = {"Idempotency-Key": "one"}
    client.post(PROJECTS, json={"name": "alpha"}, headers=headers)
    other = client.post(PROJECTS, json={"name": "beta"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    assert names(client) == ["alpha", "default"]


def test_duplicates_at_the_same_moment_run_once(client: TestClient) -> None:
    def post(_: int) -> tuple[int, str]:
        answer = client.post(PROJECTS, json={"name": "alpha"}, headers={"Idempotency-Key": "one"})
        return answer.status_code, answer.json().get("id", "")

    with ThreadPoolExecutor(6) as pool:
        answers = set(pool.map(post, range(6)))
    assert len(answers) == 1
    assert answers.pop()[0] == 201


def test_a_failure_is_not_kept(client: TestClient) -> None:
    headers = {"Idempotency-Key": "one"}
    assert client.post(PROJECTS, json={"name": "default"}, headers=headers).status_code == 409
    assert client.post(PROJECTS, json={"name": "default"}, headers=headers).json()["code"] == "name_taken"
    assert client.post(PROJECTS, json={"name": "free"}, headers=headers).status_code == 201


def test_what_is_shown_once_is_not_kept_in_clear(client: TestClient, engine: Engine) -> None:
    body = {"name": "ci", "scopes": ["read"]}
    first, again = (
        client.post(f"{PROJECTS}/default/tokens", json=body, headers={"Idempotency-Key": "one"}) for _ in range(2)
    )
    assert first.json()["token"] == again.json()["token"]
    with engine.connect() as connection:
        kept = str(connection.execute(text("SELECT * FROM idempotency_keys")).all())
    assert "one" in kept
    assert first.json()["token"] not in kept


def test_without_a_key_every_call_counts(client: TestClient) -> None:
    assert client.post(PROJECTS, json={"name": "alpha"}).status_code == 201
    assert client.post(PROJECTS, json={"name": "alpha"}).json()["code"] == "name_taken"


def test_a_form_is_bounded_with_and_without_a_key(client: TestClient) -> None:
    fields = {f"field{number}": "x" for number in range(30)}
    for headers in ({}, {"Idempotency-Key": "one"}):
        answer = client.post(f"{PROJECTS}/default/imports", data=fields, files={"file": ("x", b"y")}, headers=headers)
        assert answer.status_code == 400, headers
