"""Imports that a request waits for: parsed by another process, stored whole or not at all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from import_requests import PROJECT, ended, lines, post, upload, wait

from steerboard.datasets.imports.execution.jobs import LARGE_BYTES
from steerboard.datasets.imports.execution.runner import ImportRunner
from support.patience import wait_until

Workers = Callable[[], list[psutil.Process]]


def send(client: TestClient, name: str, count: int, length: int = 1, **headers: str) -> Any:
    """`length`: characters of a response, and a number."""
    rows = lines([{"prompt": f"Hi {i}", "response": "a" * length + str(i), "reward": i} for i in range(count)])
    data = {"name": name, "kind": "labelled"}
    return client.post(f"{PROJECT}/datasets/import", data=data, files={"file": ("a.jsonl", rows)}, headers=headers)


@pytest.fixture
def workers(app: FastAPI) -> Callable[[], list[psutil.Process]]:
    """The processes of this app, not their guardians."""
    app.state.import_processes.close()
    others = _all()
    return lambda: [process for process in _all() if process not in others]


def _all() -> list[psutil.Process]:
    children = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if child.cmdline()[1:4] == ["-m", "steerboard.app.import_process", "requests"]:
                children.append(child)
    return children


@pytest.mark.long
def test_a_killed_process_stores_nothing_and_the_next_import_has_another(client: TestClient, workers: Workers) -> None:
    assert send(client, "before", 10).status_code == 201
    (worker,) = workers()
    before = worker.cpu_times().user

    def kill() -> None:
        wait_until(lambda: worker.cpu_times().user - before >= 0.2, pause=0.01)
        worker.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    answer = send(client, "rows", 60_000, **{"Idempotency-Key": "one"})
    killer.join()
    assert (answer.status_code, answer.json()["code"]) == (500, "import_interrupted"), answer.text
    assert client.get(f"{PROJECT}/datasets/rows").status_code == 404
    again = send(client, "rows", 60, **{"Idempotency-Key": "one"})
    assert (again.status_code, again.json()["rows"]) == (201, 60), again.text
    assert worker.pid not in [process.pid for process in workers()]


def test_small_imports_share_a_process_and_a_large_one_ends_it(client: TestClient, workers: Workers) -> None:
    assert send(client, "one", 10).status_code == 201
    first = [process.pid for process in workers()]
    assert send(client, "one", 10).json()["code"] == "name_taken"
    assert send(client, "two", 10).status_code == 201
    assert [process.pid for process in workers()] == first
    assert send(client, "large", 1 + LARGE_BYTES // 10_000, 10_000).status_code == 201
    assert workers() == []


def test_the_wizard_imports_rows_with_rewards(client: TestClient, runner: ImportRunner, home: Path) -> None:
    made = upload(client, lines([{"prompt": f"Hi {i}", "response": "a", "reward": i} for i in range(10)])).json()
    post(client, made["id"], "start")
    assert wait(client, made["id"], ended)["state"] == "succeeded", (home / "logs" / "imports.log").read_text()
