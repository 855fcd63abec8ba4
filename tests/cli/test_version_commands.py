"""`steerboard datasets versions`, `difference`, `pending`, `version` and `discard`; `links` and `comments`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from commands import run
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.cli import comments, links
from steerboard.cli.client import ApiError, Client
from steerboard.cli.data import datasets
from steerboard.platform.database import transaction
from support.rows.listed_runs import Listed, list_run

ROWS = [{"prompt": f"Question {n}?", "chosen": f"Yes {n}", "rejected": f"No {n}"} for n in range(20)]


@pytest.fixture
def client(server: str, tmp_path: Path) -> Client:
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    run(datasets.app, "import", str(file), "--name", "pairs", "--kind", "preferences")
    return Client()


def _change(client: Client, row: int, action: str, **more: Any) -> None:
    client.request("PUT", f"datasets/pairs/review/rows/{row}/change", json={"action": action, **more})


def _training_rows(client: Client) -> list[int]:
    items = client.get("datasets/pairs/samples", limit=100, split="train")["items"]
    return [item["row"] for item in items]


def test_pending_changes_are_shown_made_a_version_and_compared(client: Client) -> None:
    edited, removed = _training_rows(client)[:2]
    before = {**ROWS[edited], "prompt": [{"role": "user", "content": ROWS[edited]["prompt"]}]}
    _change(client, edited, "edit", sample={**before, "chosen": "Certainly."})
    _change(client, removed, "remove")
    pending = run(datasets.app, "pending", "pairs")
    assert "1 edited, 1 removed, by " in pending
    assert f"changed row {edited}\n  - chosen: Yes {edited}\n  + chosen: Certainly." in pending
    assert f"removed row {removed}\n  prompt: Question {removed}?" in pending
    assert "Made pairs-edited-1 with 19 rows" in run(datasets.app, "version", "pairs")
    told = run(datasets.app, "difference", "pairs", "pairs-edited-1")
    assert "pairs -> pairs-edited-1: 0 added, 1 removed, 1 changed, 18 the same (matched by place in the" in told
    assert f"  - chosen: Yes {edited}\n  + chosen: Certainly." in told
    only = json.loads(run(datasets.app, "difference", "pairs", "pairs-edited-1", "--change", "removed", "--json"))
    assert [row["before"]["row"] for row in only["rows"]] == [removed]
    family = [line.split("\t") for line in run(datasets.app, "versions", "pairs").splitlines()]
    assert [(line[0], line[1], line[3], line[4]) for line in family] == [
        ("pairs", "file", "0", "0"),
        ("pairs-edited-1", "edit", "1", "1"),
    ]


def test_pending_changes_are_discarded(client: Client) -> None:
    _change(client, _training_rows(client)[0], "flip")
    assert "1 flipped" in run(datasets.app, "pending", "pairs")
    assert run(datasets.app, "discard", "pairs", "--yes") == "Discarded the changes of 1 row\n"
    assert run(datasets.app, "pending", "pairs") == ""
    with pytest.raises(ApiError, match="pending"):
        run(datasets.app, "version", "pairs")


@pytest.mark.usefixtures("client")
def test_comments_are_written_read_and_deleted() -> None:
    run(comments.app, "add", "dataset", "pairs", "Are these **real**?")
    (comment,) = json.loads(run(comments.app, "list", "dataset", "pairs", "--json"))
    assert comment["text"] == "Are these **real**?"
    assert "Are these **real**?" in run(comments.app, "list", "dataset", "pairs")
    run(comments.app, "delete", comment["id"])
    assert json.loads(run(comments.app, "list", "dataset", "pairs", "--json")) == []


@pytest.mark.usefixtures("server")
def test_a_comparison_is_shared_listed_and_revoked(sessions: sessionmaker[Session], project: Project) -> None:
    with transaction(sessions) as session:
        for name in ("slow", "fast"):
            list_run(session, project, Listed(name=name))
    link = json.loads(run(links.app, "runs", "slow", "fast", "--days", "3", "--json"))
    assert "slow / fast" in httpx.get(link["address"]).text
    (listed,) = run(links.app, "list").splitlines()
    assert listed.split("\t")[:3] == [link["id"], "runs", "slow / fast"]
    run(links.app, "revoke", link["id"])
    assert json.loads(run(links.app, "list", "--json")) == []
    assert httpx.get(link["address"]).status_code == 404
