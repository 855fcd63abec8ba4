"""Files of imports that come in parts: interrupted, continued, and checked to be what was announced."""

from __future__ import annotations

import datetime as dt
import hashlib
import uuid
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from import_requests import BASE, lines, pairs, stored_files
from sqlalchemy import update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.datasets.imports import parts
from steerboard.datasets.imports.execution.sweep import sweep
from steerboard.datasets.imports.files import ImportFiles
from steerboard.datasets.imports.tables import ImportUpload
from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings

PART = 100


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_SIZE", PART)


def announce(client: TestClient, content: bytes, **changes: Any) -> Any:
    body = {"file_name": "pairs.jsonl", "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return client.post(f"{BASE}/uploads", json={**body, **changes})


def send(client: TestClient, upload: Any, number: int, content: bytes) -> Any:
    piece = content[number * PART : (number + 1) * PART]
    return client.post(f"{BASE}/uploads/{upload['id']}/parts/{number}", files={"file": ("part", piece)})


def test_an_upload_that_broke_off_continues_where_it_was(client: TestClient, home: Path) -> None:
    content = lines(pairs(12))
    upload = announce(client, content).json()
    assert len(upload["missing"]) == -(-len(content) // PART) > 2
    send(client, upload, 1, content)
    incomplete = client.post(BASE, data={"upload": upload["id"]})
    assert (incomplete.status_code, incomplete.json()["code"]) == (409, "upload_incomplete")

    again = announce(client, content).json()
    assert (again["id"], again["missing"]) == (upload["id"], [n for n in upload["missing"] if n != 1])
    for number in again["missing"]:
        assert send(client, upload, number, content).status_code == 200
    made = client.post(BASE, data={"upload": upload["id"], "name": "mine"})
    assert made.status_code == 201, made.text
    assert {key: made.json()[key] for key in ("name", "file_name", "size")} == {
        "name": "mine",
        "file_name": "pairs.jsonl",
        "size": len(content),
    }
    # Nothing of it is kept twice, and the next upload of the file is a new one.
    assert stored_files(home) == ["0"]
    assert announce(client, content).json()["id"] != upload["id"]


def test_parts_that_are_not_as_announced_are_refused(client: TestClient) -> None:
    content = lines(pairs(5))
    upload = announce(client, content).json()
    short = client.post(f"{BASE}/uploads/{upload['id']}/parts/0", files={"file": ("part", b"x")})
    assert (short.status_code, short.json()["code"]) == (422, "upload_differs")
    assert client.post(f"{BASE}/uploads/{upload['id']}/parts/999", files={"file": ("part", b"x")}).status_code == 404
    for number in upload["missing"]:
        send(client, upload, number, content.replace(b"a0", b"b0"))
    differs = client.post(BASE, data={"upload": upload["id"]})
    assert (differs.status_code, differs.json()["code"]) == (422, "upload_differs")
    assert announce(client, content).json()["missing"] == upload["missing"]
    refused = announce(client, content, file_name="../pairs.jsonl")
    assert (refused.status_code, refused.json()["errors"][0]["location"]) == (422, "body.file_name")


def test_an_upload_that_no_one_finished_is_removed_after_a_day(
    client: TestClient, home: Path, sessions: sessionmaker[Session], settings: Settings
) -> None:
    content = lines(pairs(5))
    upload = announce(client, content).json()
    send(client, upload, 0, content)
    files = ImportFiles(settings.artifact_url)
    sweep(sessions, files)
    assert stored_files(home) == ["part-0"]
    old = uuid.UUID("01800000-0000-7000-8000-000000000000")  # a moment of 2022
    with transaction(sessions) as session:
        ago = dt.datetime.now(dt.UTC) - dt.timedelta(days=2)
        session.execute(update(ImportUpload).values(id=old, created_at=ago))
    imports = home / "artifacts" / "imports"
    (imports / upload["id"]).rename(imports / str(old))
    sweep(sessions, files)
    assert stored_files(home) == []
    assert announce(client, content).json()["id"] != str(old)
