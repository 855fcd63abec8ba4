"""Imports over the API, as the wizard makes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from support.patience import PATIENCE, wait_until

PROJECT = "/api/v1/projects/default"
BASE = f"{PROJECT}/imports"


def pairs(count: int, **more: Any) -> list[Any]:
    return [{"q": f"Hi {i}", "good": f"a{i}", "poor": "no", "note": i, **more} for i in range(count)]


def lines(rows: list[Any]) -> bytes:
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode()


def upload(client: TestClient, content: bytes, file_name: str = "my pairs.jsonl", **fields: str) -> Any:
    return client.post(BASE, data=fields, files={"file": (file_name, content)})


MAPPED = {"kind": "preferences", "mapping": {"prompt": "q", "chosen": "good", "rejected": "poor"}}


def mapped(client: TestClient, content: bytes, **choices: Any) -> str:
    """The id of an import whose mapping fits `pairs`."""
    made = upload(client, content).json()
    changed = client.patch(f"{BASE}/{made['id']}", json={**MAPPED, **choices})
    assert (changed.status_code, changed.json()["problem"]) == (200, None), changed.text
    return str(made["id"])


def post(client: TestClient, id_: str, action: str) -> Any:
    answer = client.post(f"{BASE}/{id_}/{action}")
    assert answer.status_code == 202, answer.text
    return answer.json()


def wait(client: TestClient, id_: str, until: Callable[[Any], bool], seconds: float = PATIENCE) -> Any:
    def import_() -> Any:
        return client.get(f"{BASE}/{id_}").json()

    return wait_until(
        lambda: next(filter(until, [import_()]), None), lambda: f"it did not come to that: {import_()}", seconds=seconds
    )


def ended(import_: Any) -> bool:
    return import_["state"] not in ("validating", "importing")


def stored_files(home: Path) -> list[str]:
    return [path.name for path in (home / "artifacts").rglob("*") if path.is_file()]
