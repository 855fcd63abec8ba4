"""Clients that send, or take, as little as they can. Each test speaks to a server set up as in production."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import make_url
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.app import connections
from steerboard.app.health import make_probes
from steerboard.platform.concurrency import AT_ONCE
from steerboard.platform.database import transaction
from steerboard.platform.events import log as events
from steerboard.platform.http import body_limits
from support.patience import PATIENCE, wait_until
from support.servers.served_app import Client, served

API = "/api/v1"
FORM = "multipart/form-data; boundary=b"
OPENING = b'--b\r\ncontent-disposition: form-data; name="file"; filename="f.jsonl"\r\n\r\n{"prompt":'


@pytest.fixture
def url(app: FastAPI) -> Iterator[str]:
    with served(app) as address:
        yield address


@pytest.fixture
def opened(url: str) -> Iterator[list[Client]]:
    """Connections, closed at the end."""
    clients: list[Client] = []
    yield clients
    for client in clients:
        client.close()


@pytest.fixture
def uploads(app: FastAPI) -> list[str]:
    """The address of every endpoint that takes a form."""
    return [
        re.sub(r"{\w+}", "x", path.replace("{project}", "default"))
        for path, operations in app.openapi()["paths"].items()
        if "multipart/form-data" in operations.get("post", {}).get("requestBody", {}).get("content", {})
    ]


def answers(url: str, token: str) -> float:
    """Seconds that an ordinary request takes, one that asks the database."""
    began = time.monotonic()
    assert (
        httpx.get(f"{url}{API}/projects", headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE).status_code
        == 200
    )
    return time.monotonic() - began


@pytest.mark.parametrize("with_key", [False, True], ids=["plain", "with-a-key"])
def test_uploads_that_never_end_hold_up_nobody(
    app: FastAPI, url: str, token: str, opened: list[Client], uploads: list[str], with_key: bool
) -> None:
    assert len(uploads) > 5
    for number in range(3 * AT_ONCE):
        client = Client(url)
        opened.append(client)
        path = uploads[number % len(uploads)]
        key = {"idempotency_key": f"k{number}"} if with_key else {}
        client.head("POST", path, authorization=f"Bearer {token}", content_type=FORM, content_length=10**9, **key)
        client.send(OPENING)
    for method, path in (("POST", "projects"), ("PATCH", "projects/default/imports/i"), ("POST", "session")):
        for length in ({"content_length": 4000}, {"transfer_encoding": "chunked"}):
            client = Client(url)
            opened.append(client)
            auth = {"authorization": f"Bearer {token}"}
            client.head(method, f"{API}/{path}", content_type="application/json", **auth, **length)
            client.send(b"{" if "content_length" in length else b"1\r\n{\r\n")
    assert answers(url, token) < 10
    wait_until(lambda: app.state.engine.pool.checkedout() == 0)


@pytest.mark.parametrize("known", [False, True], ids=["by-nobody", "without-the-right"])
def test_an_upload_is_refused_before_it_is_read(
    url: str, client: httpx.Client, opened: list[Client], uploads: list[str], known: bool
) -> None:
    who = {}
    if known:
        made = client.post(f"{API}/projects/default/tokens", json={"name": "reader", "scopes": ["read"]}).json()
        who = {"authorization": f"Bearer {made['token']}"}
    for upload in uploads:
        opened.append(Client(url))
        opened[-1].head("POST", upload, content_type=FORM, content_length=10**9, **who)
        status, problem = opened[-1].answer()
        assert (status, problem["code"]) == ((403, "missing_scope") if known else (401, "unauthenticated")), upload


def test_nobody_unknown_sends_a_large_body(url: str, opened: list[Client]) -> None:
    """Neither declared nor in pieces; and to sign in takes less still."""
    sizes = (
        (f"{API}/projects", body_limits.UNKNOWN_BYTES, 401),
        (f"{API}/projects/default/recipes/check", body_limits.UNKNOWN_BYTES, 401),
        (f"{API}/session", body_limits.SIGN_IN_BYTES, 413),
        ("/sign-in/some-code", body_limits.SIGN_IN_BYTES, 413),
    )
    for path, most, status in sizes:
        declared, in_pieces = Client(url), Client(url)
        opened += [declared, in_pieces]
        declared.head("POST", path, content_type="application/json", content_length=16 << 20)
        assert declared.answer()[0] == status, path
        in_pieces.head("POST", path, content_type="application/json", transfer_encoding="chunked")
        in_pieces.send(b"%x\r\n%s\r\n" % (most + 1, b"[" * (most + 1)))
        assert in_pieces.answer()[0] == status, path


@pytest.mark.parametrize(
    "kind", ["errors", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("lists", "numbers", "keys", "text"))]
)
def test_a_large_json_body_does_not_stop_the_others(url: str, token: str, kind: str) -> None:
    size = body_limits.JSON_BYTES - 1000
    body = {
        "lists": b"[" + b"[]," * (size // 3) + b"0]",
        "numbers": b"[" + b"0," * (size // 2) + b"0]",
        "keys": b"{" + b",".join(b'"%07x":0' % number for number in range(size // 12)) + b"}",
        "errors": b"{" + b",".join(b'"%07x":"%s"' % (number, b"word, " * 15) for number in range(49_000)) + b"}",
        "text": b'{"name": "a", "text": "' + b'some words, and a quote \\" [of them] ' * (size // 40) + b'"}',
    }[kind]
    statuses: list[int] = []
    # What a third of the first kind takes here and now: the machine may be busy with other things.
    began = time.monotonic()
    json.loads(b"[" + b"[]," * (size // 9) + b"0]")
    patience = max(1.5, time.monotonic() - began)

    def send() -> None:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        statuses.append(httpx.post(f"{url}{API}/projects", content=body, headers=headers, timeout=PATIENCE).status_code)

    sending = threading.Thread(target=send)
    sending.start()
    slowest = 0.0
    while sending.is_alive():
        began = time.monotonic()
        assert httpx.get(f"{url}{API}/system/live", timeout=PATIENCE).status_code == 204
        slowest = max(slowest, time.monotonic() - began)
    assert statuses == [413 if kind in ("lists", "numbers", "keys") else 422]
    assert slowest < patience


def test_a_body_that_comes_too_slowly_is_given_up(
    url: str, token: str, opened: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_limits, "IDLE_SECONDS", 0.3)
    for path, kind in (("projects", "application/json"), ("projects/default/imports", FORM)):
        client = Client(url)
        opened.append(client)
        about = {"authorization": f"Bearer {token}", "content_type": kind}
        client.head("POST", f"{API}/{path}", content_length=1000, **about)
        client.send(b"{" if kind != FORM else OPENING)
        status, problem = client.answer()
        assert (status, problem["code"]) == (408, "request_timeout"), path


def test_a_body_that_drips_is_given_up_however_steadily_it_does(
    url: str, token: str, opened: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_limits, "GRACE_SECONDS", 0.5)
    client = Client(url)
    opened.append(client)
    client.head("POST", f"{API}/projects", content_type="application/json", content_length=1000)
    ended = threading.Event()

    def drip() -> None:
        while not ended.wait(0.05):
            client.send(b"{")

    dripping = threading.Thread(target=drip)
    dripping.start()
    assert client.answer()[0] == 408
    ended.set()
    dripping.join()


def test_headers_that_never_end_are_given_up(
    url: str, token: str, opened: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    for beginning in (b"", b"GET", b"GET /api/v1/projects HTTP/1.1\r\nhost: a\r\nx-slow: "):
        opened.append(Client(url))
        opened[-1].send(beginning)
    # The second request of a connection is no different from the first.
    again = Client(url)
    opened.append(again)
    again.head("GET", f"{API}/openapi.json")
    again.answer()
    again.send(b"GET /")
    assert all(client.is_closed() for client in opened)
    assert answers(url, token) < 10


def test_headers_without_an_end_to_their_size_are_cut_off(url: str, opened: list[Client]) -> None:
    client = Client(url)
    opened.append(client)
    client.send(b"GET / HTTP/1.1\r\n")
    many = (b"x-more: " + b"y" * 8000 + b"\r\n") * 1000
    with pytest.raises(ConnectionError):
        client.send(many)


def test_many_slow_headers_leave_room_for_others(url: str, token: str, opened: list[Client]) -> None:
    for _ in range(500):
        opened.append(Client(url))
        opened[-1].send(b"GET /api/v1/projects HTTP/1.1\r\nx-slow:")
    assert answers(url, token) < 10


def _happen(sessions: sessionmaker[Session], project: Project, number: int, size: int) -> None:
    with transaction(sessions) as session:
        for _ in range(number):
            events.emit(session, project.id, "test.event", {"text": "x" * size})


@pytest.mark.long
def test_500_frozen_readers_of_the_stream_cost_others_nothing(
    app: FastAPI, url: str, token: str, opened: list[Client], sessions: sessionmaker[Session], project: Project
) -> None:
    for _ in range(500):
        opened.append(Client(url, receive_buffer=2048))
        opened[-1].head("GET", f"{API}/projects/default/events", authorization=f"Bearer {token}")
    wait_until(lambda: sum(feed.readers for feed in app.state.feeds.values()) >= 500)
    # More than all buffers between them and us hold.
    for _ in range(10):
        _happen(sessions, project, 20, 20_000)
    assert max(answers(url, token) for _ in range(5)) < 10
    wait_until(lambda: app.state.engine.pool.checkedout() == 0)


def test_a_reader_that_takes_nothing_is_let_go(
    app: FastAPI,
    url: str,
    token: str,
    opened: list[Client],
    sessions: sessionmaker[Session],
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "STALL_SECONDS", 0.5)
    opened.append(Client(url, receive_buffer=2048))
    opened[-1].head("GET", f"{API}/projects/default/events?after=0", authorization=f"Bearer {token}")
    _happen(sessions, project, 200, 40_000)
    wait_until(lambda: app.state.feeds)
    wait_until(lambda: not app.state.feeds, "it is still there")


def test_health_has_a_deadline_of_its_own_where_the_database_has_gone_silent(
    client: httpx.Client, app: FastAPI
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        gone = make_url(f"postgresql+psycopg://nobody@127.0.0.1:{port}/none")
        app.state.probes = make_probes(app.state.settings, gone)
        began = time.monotonic()
        threads_before = threading.active_count()
        for _ in range(3):
            answer = client.get(f"{API}/system/health")
            assert (answer.status_code, answer.json()["database"]) == (503, "unavailable")
        assert time.monotonic() - began < 15
        assert threading.active_count() <= threads_before + 2
        # Clients that do not need what is silent are answered.
        assert client.get(f"{API}/projects").status_code == 200


def test_the_server_keeps_an_idle_connection_longer_than_its_clients() -> None:
    assert connections.server_config("none").timeout_keep_alive > (httpx.Limits().keepalive_expiry or 0)
