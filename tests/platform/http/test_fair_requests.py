"""One caller who sends many slow requests, and everyone else. Requests are held up by a lock in the database."""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.service import register_rows
from steerboard.datasets.tables import SampleRow
from steerboard.platform.concurrency import AT_ONCE
from steerboard.platform.database import transaction
from steerboard.platform.fair_slots import FairSlots
from steerboard.platform.kept_results import KeptResults
from support.patience import PATIENCE, wait_until
from support.rows.other_token import token_headers
from support.servers.served_app import Client, served

PROJECT = "/api/v1/projects/default"
PAIRS = [
    {"row": i, "prompt": [{"role": "user", "content": f"What is {i}?"}], "chosen": "It is.", "rejected": "No."}
    for i in range(30)
]


@pytest.fixture
def pairs(sessions: sessionmaker[Session], project: Project, tmp_path: Path) -> str:
    """The path of a dataset of preferences."""
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in PAIRS))
    with transaction(sessions) as session:
        register_rows(session, project, name="pairs", kind="preferences", path=file, run_id=None)
    return f"{PROJECT}/datasets/pairs"


@pytest.fixture
def url(app: FastAPI) -> Iterator[str]:
    with served(app) as address:
        yield address


@pytest.fixture
def locked(engine: Engine) -> Iterator[Callable[[], None]]:
    """Samples can't be read until it is called."""
    with engine.connect() as connection:
        connection.execute(text(f"LOCK TABLE {SampleRow.__tablename__} IN ACCESS EXCLUSIVE MODE"))
        yield connection.rollback


def greedy_clients(url: str, headers: dict[str, str], requests: list[tuple[str, str, dict[str, int]]]) -> list[Client]:
    clients = []
    for method, path, body in requests:
        client, content = Client(url), json.dumps(body).encode() if body else b""
        client.head(
            method,
            path,
            authorization=headers["Authorization"],
            content_type="application/json",
            content_length=len(content),
        )
        client.send(content)
        clients.append(client)
    return clients


def test_one_callers_slow_requests_hold_up_nobody_else(
    app: FastAPI,
    url: str,
    token: str,
    project: Project,
    sessions: sessionmaker[Session],
    pairs: str,
    locked: Callable[[], None],
) -> None:
    greedy = token_headers(sessions, project.id, "read")
    # The first request of a credential is its address's.
    assert httpx.get(f"{url}{PROJECT}/runs", headers=greedy).status_code == 200
    slow = [("POST", f"{pairs}/cleaning/preview", {"examples": i % 10}) for i in range(2 * AT_ONCE)]
    slow += [("GET", f"{pairs}/samples", {}) for _ in range(2 * AT_ONCE)]
    clients = greedy_clients(url, greedy, slow)
    pools = app.state.pools
    wait_until(lambda: pools["requests"].waiting + pools["processes"].waiting >= 2 * AT_ONCE)
    answer = httpx.get(f"{url}{PROJECT}/runs", headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE)
    assert answer.status_code == 200
    locked()
    assert {client.answer()[0] for client in clients} == {200}
    for client in clients:
        client.close()


def test_a_large_body_arrives_whole_while_its_sender_waits_for_a_slot(
    app: FastAPI,
    url: str,
    project: Project,
    sessions: sessionmaker[Session],
    pairs: str,
    locked: Callable[[], None],
) -> None:
    greedy = token_headers(sessions, project.id, "read", "write")
    assert httpx.get(f"{url}{PROJECT}/runs", headers=greedy).status_code == 200
    clients = greedy_clients(url, greedy, [("GET", f"{pairs}/samples", {})] * AT_ONCE)
    waiting = app.state.pools["requests"]
    wait_until(lambda: waiting.waiting > 0)
    before = waiting.waiting
    rows = "".join(json.dumps({"prompt": f"question {n}", "response": "word " * 20}) + "\n" for n in range(5000))
    with ThreadPoolExecutor(1) as thread:
        upload = thread.submit(
            lambda: httpx.post(
                f"{url}{PROJECT}/datasets/import",
                headers=greedy,
                data={"name": "large", "kind": "instructions"},
                files={"file": ("large.jsonl", rows.encode())},
                timeout=60,
            )
        )
        wait_until(lambda: waiting.waiting > before)
        locked()
        assert upload.result().status_code == 201
    assert {client.answer()[0] for client in clients} == {200}
    for client in clients:
        client.close()


def test_made_up_tokens_are_one_caller(app: FastAPI, url: str, token: str, pairs: str) -> None:
    """Otherwise anyone could have as many shares as they make up credentials."""
    known = {"Authorization": f"Bearer {token}"}
    assert httpx.get(f"{url}{PROJECT}/runs", headers=known).status_code == 200
    unknown = [{"Authorization": f"Bearer {uuid.uuid4().hex}"} for _ in range(2)]
    callers = {app.state.callers.get(httpx.Request("GET", url, headers=headers)) for headers in [known, *unknown]}
    assert len(callers) == 2


def test_a_request_whose_client_has_gone_is_never_begun(
    app: FastAPI,
    url: str,
    token: str,
    project: Project,
    sessions: sessionmaker[Session],
    pairs: str,
    locked: Callable[[], None],
) -> None:
    greedy = token_headers(sessions, project.id, "read")
    asked = [("GET", f"{pairs}/samples", {}) for _ in range(3 * AT_ONCE)]
    clients = greedy_clients(url, greedy, asked)
    slots = app.state.pools["requests"]
    wait_until(lambda: slots.waiting > AT_ONCE)
    for client in clients:
        client.close()
    # All the time, those that were begun are held up.
    wait_until(lambda: slots.waiting == 0)
    locked()
    answer = httpx.get(f"{url}{PROJECT}/runs", headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE)
    assert answer.status_code == 200


def test_callers_are_served_in_rotation_and_none_takes_every_slot() -> None:
    async def run() -> list[str]:
        slots, served = FairSlots(3, share=2), []

        async def use(caller: str) -> None:
            await slots.take(caller)
            served.append(caller)

        tasks = [asyncio.create_task(use(caller)) for caller in ["greedy"] * 5 + ["a", "a", "b"]]
        await asyncio.sleep(0)
        assert served == ["greedy", "greedy", "a"]
        for caller in ("a", "greedy", "a", "b"):
            slots.give_back(caller)
            await asyncio.sleep(0)
        assert slots.waiting == 2
        # One that gives up leaves its place to the next, also when its turn has just come.
        slots.give_back("greedy")
        tasks[3].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert [slots.take_now("c") for _ in range(2)] == [True, False]
        return served

    with ThreadPoolExecutor(1) as thread:  # a browser's test leaves a running loop in this one
        served = thread.submit(lambda: asyncio.run(run())).result()
    assert served == ["greedy", "greedy", "a", "a", "greedy", "b", "greedy"]


def test_equal_requests_are_computed_once_and_a_failure_is_not_kept() -> None:
    kept: KeptResults[int] = KeptResults(2)
    computed: list[int] = []
    together = threading.Barrier(4)

    def ask() -> int:
        together.wait()
        return kept.get("key", lambda: computed.append(1) or len(computed))

    with ThreadPoolExecutor(4) as threads:
        assert [future.result() for future in [threads.submit(ask) for _ in range(4)]] == [1, 1, 1, 1]
    with pytest.raises(ZeroDivisionError):
        kept.get("other", lambda: 1 // 0)
    assert kept.get("other", lambda: 5) == 5
