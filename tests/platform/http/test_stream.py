from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import event
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import members
from steerboard.accounts import service as accounts
from steerboard.accounts.http import event_stream
from steerboard.accounts.tables import Project
from steerboard.app.main import create_app
from steerboard.platform.database import transaction
from steerboard.platform.events import log as events
from steerboard.platform.events import wakeups
from steerboard.platform.security.credentials import SESSION_COOKIE
from steerboard.platform.settings import Settings
from support.patience import PATIENCE, wait_until
from support.servers.served_app import served

PATH = "/api/v1/projects/default/events"


@pytest.fixture
def url(app: FastAPI) -> Iterator[str]:
    with served(app) as address:
        yield address


def write(sessions: sessionmaker[Session], project: Project, *numbers: int) -> None:
    for number in numbers:
        with transaction(sessions) as session:
            events.emit(session, project.id, "test.event", {"number": number})


def follow(
    url: str, token: str, count: int, headers: dict[str, str] | None = None, begin: Callable[[], None] = lambda: None
) -> list[dict[str, object]]:
    """The next `count` events. `begin` is called once the stream is open."""
    ids: list[int] = []
    heard: list[dict[str, object]] = []
    all_headers = {"Authorization": f"Bearer {token}", **(headers or {})}
    with httpx.stream("GET", url + PATH, headers=all_headers, timeout=PATIENCE) as response:
        assert response.status_code == 200
        for line in response.iter_lines():
            if line.startswith("retry:"):
                begin()
            if line.startswith("id: "):
                ids.append(int(line.removeprefix("id: ")))
            if line.startswith("data: "):
                heard.append(json.loads(line.removeprefix("data: ")))
            if not line and len(heard) == count:
                # What a browser sends as `Last-Event-ID` when it reconnects.
                assert ids == [event["id"] for event in heard]
                return heard
    return heard


def test_a_reader_that_comes_back_gets_exactly_what_it_missed(
    url: str, token: str, sessions: sessionmaker[Session], project: Project
) -> None:
    write(sessions, project, 1, 2, 3, 4)
    heard = follow(url, token, 2, {"Last-Event-ID": "2"})
    assert [event["payload"] for event in heard] == [{"number": 3}, {"number": 4}]
    assert [event["id"] for event in heard] == [3, 4]


def test_a_new_reader_hears_only_what_happens_from_now_on(
    url: str, token: str, sessions: sessionmaker[Session], project: Project
) -> None:
    write(sessions, project, 1, 2)
    heard = follow(url, token, 1, begin=lambda: write(sessions, project, 3))
    assert heard[0]["payload"] == {"number": 3}


def test_concurrent_writers_never_cost_a_reader_an_event_or_its_order(
    url: str, token: str, sessions: sessionmaker[Session], project: Project
) -> None:
    writers, each = 6, 25

    def work(writer: int) -> None:
        for number in range(each):
            with transaction(sessions) as session:
                events.emit(session, project.id, "test.event", {"writer": writer, "number": number})
                if number % 5 == 0:
                    time.sleep(0.005)  # a transaction that holds its id for a while before it commits

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(writers)]

    def begin() -> None:
        for thread in threads:
            thread.start()

    heard = follow(url, token, writers * each, {"Last-Event-ID": "0"}, begin)
    for thread in threads:
        thread.join()
    assert [event["id"] for event in heard] == list(range(1, writers * each + 1))
    assert len({json.dumps(event["payload"]) for event in heard}) == writers * each


def test_an_event_of_a_failed_transaction_is_never_seen(
    url: str, token: str, sessions: sessionmaker[Session], project: Project
) -> None:
    with sessions() as session:
        events.emit(session, project.id, "test.event", {"number": 0})
        session.rollback()
    write(sessions, project, 1)
    assert follow(url, token, 1, {"Last-Event-ID": "0"})[0]["payload"] == {"number": 1}


def test_redis_wakes_a_reader_at_once(
    url: str, token: str, sessions: sessionmaker[Session], project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakeups, "POLL_SECONDS", 30.0)
    began = time.monotonic()

    def later() -> None:
        threading.Timer(1.0, write, (sessions, project, 1)).start()

    assert follow(url, token, 1, begin=later)[0]["payload"] == {"number": 1}
    assert time.monotonic() - began < 25


def test_without_redis_the_stream_goes_on_by_polling(
    settings: Settings, token: str, sessions: sessionmaker[Session], project: Project
) -> None:
    lonely = settings.model_copy(update={"redis_url": "redis://127.0.0.1:1"})
    with served(create_app(lonely, sessions=sessions)) as url:
        heard = follow(url, token, 2, begin=lambda: write(sessions, project, 1, 2))
    assert [event["payload"] for event in heard] == [{"number": 1}, {"number": 2}]


def test_waiting_readers_hold_no_connection_of_the_database(
    url: str, token: str, app: FastAPI, sessions: sessionmaker[Session], project: Project
) -> None:
    opened = threading.Barrier(26, timeout=PATIENCE)
    results: list[list[dict[str, object]]] = []

    def read() -> None:
        results.append(follow(url, token, 1, begin=lambda: opened.wait() and None))

    readers = [threading.Thread(target=read) for _ in range(25)]
    for reader in readers:
        reader.start()
    opened.wait()
    wait_until(lambda: app.state.engine.pool.checkedout() == 0)
    write(sessions, project, 1)
    for reader in readers:
        reader.join()
    assert len(results) == 25


def test_a_quiet_stream_sends_heartbeats(url: str, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 0.1)
    monkeypatch.setattr(wakeups, "POLL_SECONDS", 0.1)
    with httpx.stream("GET", url + PATH, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE) as response:
        assert ": still here" in (line for line in response.iter_lines())


@pytest.mark.parametrize("how", ["removed", "signed out", "revoked"])
def test_who_may_no_longer_read_loses_an_open_stream(
    url: str, sessions: sessionmaker[Session], project: Project, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(event_stream, "CHECK_SECONDS", 0.1)
    monkeypatch.setattr(wakeups, "POLL_SECONDS", 0.1)
    with transaction(sessions) as session:
        _, user, _ = members.add(session, project, "guest", "viewer")
        cookie, _ = accounts.start_session(session, user.id)
        _, token = accounts.create_token(session, name="guest", scopes=["read"], project_id=project.id)
    who = {"Authorization": f"Bearer {token}"} if how == "revoked" else {"Cookie": f"{SESSION_COOKIE}={cookie}"}
    with httpx.stream("GET", url + PATH, headers=who, timeout=PATIENCE) as response:
        lines = response.iter_lines()
        assert next(lines).startswith("retry:")
        time.sleep(0.5)  # several checks of who may read
        write(sessions, project, 1)
        assert any(line.startswith("data: ") for line in lines), "who may read continues reading"
        with transaction(sessions) as session:
            if how == "removed":
                members.remove(session, project, "guest")
            elif how == "signed out":
                accounts.end_session(session, cookie)
            else:
                accounts.revoke_token(session, project, "guest")
        assert [line for line in lines if line.startswith("data: ")] == []


def test_what_is_new_is_read_once_however_many_follow(
    url: str, token: str, app: FastAPI, sessions: sessionmaker[Session], project: Project
) -> None:
    reads: list[str] = []
    count = 12
    opened = threading.Barrier(count + 1, timeout=PATIENCE)

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if "FROM events" in statement:
            reads.append(statement)

    heard: list[list[object]] = []

    def read() -> None:
        got = follow(url, token, 5, begin=lambda: opened.wait() and None)
        heard.append([event["payload"] for event in got])

    threads = [threading.Thread(target=read) for _ in range(count)]
    for thread in threads:
        thread.start()
    opened.wait()
    time.sleep(1.0)  # every reader has seen that there is nothing yet
    event.listen(app.state.engine, "before_cursor_execute", note)
    write(sessions, project, 1, 2, 3, 4, 5)
    for thread in threads:
        thread.join()
    event.remove(app.state.engine, "before_cursor_execute", note)
    assert heard == [[{"number": n} for n in range(1, 6)]] * count
    assert len(reads) < count


def test_a_crowd_of_requests_is_answered_one_after_the_other(url: str, token: str) -> None:
    """More at once than there are threads and connections: none of them waits for what another one holds."""

    async def ask() -> list[int]:
        headers = {"Authorization": f"Bearer {token}"}
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=PATIENCE) as client:
            answers = await asyncio.gather(*(client.get("/api/v1/projects/default/runs") for _ in range(160)))
        return [answer.status_code for answer in answers]

    # In a thread: a browser test of this process may have a loop in ours.
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(asyncio.run, ask()).result() == [200] * 160


@pytest.mark.parametrize("last", ["x", "-1", "\xb2", "9" * 30])
def test_a_last_event_id_that_is_none_is_refused(url: str, token: str, last: str) -> None:
    headers = {"Authorization": f"Bearer {token}", "Last-Event-ID": last.encode("latin-1")}
    answer = httpx.get(url + PATH, headers=headers, timeout=PATIENCE)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_event_id")
