"""Imports whose process dies, is cancelled or is never started again."""

from __future__ import annotations

import datetime as dt
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from fastapi.testclient import TestClient
from import_requests import BASE, PROJECT, ended, lines, mapped, pairs, post, stored_files, wait
from sqlalchemy import Connection, Engine, select, text, update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.imports.execution import claims
from steerboard.datasets.imports.execution.runner import ImportRunner
from steerboard.datasets.imports.execution.sweep import sweep
from steerboard.datasets.imports.files import ImportFiles
from steerboard.datasets.imports.tables import Import
from steerboard.datasets.tables import Dataset
from steerboard.platform.database import transaction


def child_of(id_: str) -> psutil.Process | None:
    """The process itself, not its guardian."""
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if id_ in command and command[1:3] == ["-m", "steerboard.app.import_process"]:
            return process
    return None


@pytest.fixture
def large() -> bytes:
    return lines(pairs(8_000))


class Gate:
    """Holds every COPY up in its middle, so that however fast an import is, it is hurt among its rows. The database, in
    which a trigger is left, is made again for the next test."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        for statement in (
            "CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW; END'",
            "CREATE TRIGGER gate BEFORE INSERT ON samples FOR EACH ROW WHEN (NEW.row = 1000)"
            " EXECUTE FUNCTION wait_at_gate()",
            "SELECT pg_advisory_lock(1)",
        ):
            connection.execute(text(statement))

    def waiting(self) -> list[int]:
        """The server's processes that write rows and have come to the gate."""
        query = text(
            "SELECT pid FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
            " WHERE datname = current_database() AND locktype = 'advisory' AND objid = 1 AND NOT granted"
        )
        return list(self._connection.scalars(query))

    def open(self) -> None:
        self._connection.execute(text("SELECT pg_advisory_unlock(1)"))


@pytest.fixture
def gate(engine: Engine) -> Iterator[Gate]:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield Gate(connection)


def begin(client: TestClient, id_: str, gate: Gate) -> psutil.Process:
    """Start, and wait until a part of the rows is written."""
    post(client, id_, "start")
    document = wait(client, id_, lambda document: ended(document) or gate.waiting())
    assert document["progress"]["read"] > 0
    process = child_of(id_)
    assert process is not None
    return process


@pytest.mark.long
def test_a_killed_process_is_replaced_and_the_dataset_is_whole(
    client: TestClient, runner: ImportRunner, large: bytes, gate: Gate
) -> None:
    id_ = mapped(client, large)
    os.kill(begin(client, id_, gate).pid, signal.SIGKILL)
    gate.open()
    done = wait(client, id_, ended)
    assert (done["state"], done["report"]["rows"]) == ("succeeded", 8_000)
    assert client.get(f"{PROJECT}/datasets/my-pairs").json()["rows"] == 8_000


@pytest.mark.long
def test_a_broken_connection_costs_an_attempt_and_not_the_import(
    client: TestClient, runner: ImportRunner, large: bytes, sessions: sessionmaker[Session], gate: Gate
) -> None:
    id_ = mapped(client, large)
    begin(client, id_, gate)
    copying = text(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND query LIKE 'COPY samples%' AND pid <> pg_backend_pid()"
    )
    with transaction(sessions) as session:
        assert session.scalars(copying).all() == [True]
    gate.open()
    done = wait(client, id_, ended)
    assert (done["state"], done["problem"]) == ("succeeded", None)
    assert client.get(f"{PROJECT}/datasets/my-pairs").json()["rows"] == 8_000


def test_what_always_dies_fails_with_a_reason(client: TestClient, sessions: sessionmaker[Session]) -> None:
    id_ = mapped(client, lines(pairs(3)))
    post(client, id_, "start")
    for _ in range(3):
        with transaction(sessions) as session:
            lease = claims.claim_next(session, 30.0, 3)
            assert lease is not None
            assert claims.claim_next(session, 30.0, 3) is None
            claims.give_back(session, lease, 0.0, tried=True)
    with transaction(sessions) as session:
        assert claims.claim_next(session, 30.0, 3) is None
    document = client.get(f"{BASE}/{id_}").json()
    assert (document["state"], document["problem"]["code"]) == ("failed", "import_interrupted")
    assert post(client, id_, "start")["state"] == "importing"


@pytest.mark.long
def test_a_cancelled_import_stops_at_once_and_can_start_again(
    client: TestClient, runner: ImportRunner, large: bytes, sessions: sessionmaker[Session], gate: Gate
) -> None:
    id_ = mapped(client, large)
    process = begin(client, id_, gate)
    assert client.patch(f"{BASE}/{id_}", json={"clean": False}).json()["code"] == "import_busy"
    assert post(client, id_, "cancel")["state"] == "cancelled"
    assert client.post(f"{BASE}/{id_}/cancel").json()["code"] == "import_ended"
    process.wait(10)
    with sessions() as session:
        assert session.scalars(select(Dataset)).all() == []
    gate.open()
    post(client, id_, "start")
    assert wait(client, id_, ended)["state"] == "succeeded"


def test_files_are_swept_when_nobody_needs_them(
    client: TestClient, runner: ImportRunner, sessions: sessionmaker[Session], files: ImportFiles, home: Path
) -> None:
    done, old, fresh = (mapped(client, lines(pairs(3))) for _ in range(3))
    post(client, done, "start")
    assert wait(client, done, ended)["state"] == "succeeded"
    stray = "01800000-0000-7000-8000-000000000000"  # a moment of 2022
    for folder in (stray, fresh):
        (home / "artifacts" / "imports" / folder).mkdir(exist_ok=True)
    (home / "artifacts" / "imports" / stray / "0").write_bytes(b"x")
    with transaction(sessions) as session:
        ago = dt.datetime.now(dt.UTC) - dt.timedelta(days=31)
        session.execute(update(Import).where(Import.id == old).values(updated_at=ago))
    sweep(sessions, files)
    assert stored_files(home) == ["0"]
    assert client.get(f"{BASE}/{fresh}/preview").status_code == 200
    assert client.post(f"{BASE}/{old}/start").json()["code"] == "import_file_gone"
    assert client.get(f"{BASE}/{old}/preview").json()["code"] == "import_file_gone"
    assert client.get(f"{BASE}/{old}").json()["file_gone"] is True


def test_a_dataset_that_was_imported_can_be_deleted(client: TestClient, runner: ImportRunner, project: Project) -> None:
    id_ = mapped(client, lines(pairs(3)))
    post(client, id_, "start")
    assert wait(client, id_, ended)["dataset_id"]
    assert client.delete(f"{PROJECT}/datasets/my-pairs").status_code == 204
    assert client.get(f"{BASE}/{id_}").json()["dataset_id"] is None
