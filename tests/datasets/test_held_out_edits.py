"""Held-out labels: not flipped in bulk, and named by a version that changes them and by all that is made of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, select, text
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import AuditEntry, Project
from steerboard.platform import migrations
from steerboard.platform.database import transaction

BASE = "/api/v1/projects/default/datasets"
ROWS = [{"prompt": f"Question {n}?", "chosen": f"Yes {n}", "rejected": f"No {n}", "id": n} for n in range(40)]


@pytest.fixture
def pairs(
    client: TestClient,
    sessions: sessionmaker[Session],
    project: Project,
    write_jsonl: Callable[..., Path],
    import_path: Callable[..., Any],
) -> dict[str, list[int]]:
    """Rows of the dataset `pairs` by split."""
    with transaction(sessions) as session:
        session.get_one(Project, project.id).held_out_fraction = project.held_out_fraction = 0.5
    import_path(write_jsonl(ROWS), name="pairs", kind="preferences")
    items = client.get(f"{BASE}/pairs/samples?limit=100").json()["items"]
    return {split: [row["row"] for row in items if row["split"] == split] for split in ("train", "held_out")}


def post(client: TestClient, path: str, status: int = 201, **body: Any) -> Any:
    answer = client.post(f"{BASE}/{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def changes(made: dict[str, Any]) -> list[tuple[str, int, int]]:
    return [(change["dataset"], change["flipped"], change["dropped"]) for change in made["held_out_changes"]]


def test_held_out_labels_are_not_flipped_in_bulk(client: TestClient, pairs: dict[str, list[int]]) -> None:
    refused = post(client, "pairs/edits", 409, flip=[*pairs["train"], *pairs["held_out"][:2]])
    assert (refused["code"], refused["detail"][:6]) == ("held_out_flips", "2 rows")
    assert [dataset["name"] for dataset in client.get(BASE).json()["items"]] == ["pairs"]
    made = post(client, "pairs/edits", flip=pairs["train"])
    assert (made["origin"]["flipped"], changes(made)) == (len(pairs["train"]), [])


def test_a_corrected_held_out_label_is_named_by_the_version_and_by_all_that_is_made_of_it(
    client: TestClient, sessions: sessionmaker[Session], pairs: dict[str, list[int]]
) -> None:
    held_out = pairs["held_out"]
    once = post(client, "pairs/edits", flip=[held_out[0], pairs["train"][0]], drop=held_out[1:3])
    assert changes(once) == [("pairs-edited-1", 1, 2)]
    assert changes(client.get(f"{BASE}/pairs-edited-1").json()) == [("pairs-edited-1", 1, 2)]
    assert changes(client.get(f"{BASE}/pairs").json()) == []
    twice = post(client, "pairs-edited-1/edits", flip=[held_out[0]])
    both = [("pairs-edited-1", 1, 2), ("pairs-edited-2", 1, 0)]
    assert changes(twice) == both
    # Only rows for training are changed here, in a dataset whose held-out rows were.
    assert changes(post(client, "pairs-edited-2/edits", drop=[pairs["train"][0]])) == both
    assert changes(post(client, "pairs-edited-2/conversions", conversion="thumbs_from_pairs")) == both
    with sessions() as session:
        entries = session.scalars(select(AuditEntry).where(AuditEntry.action == "dataset.edit").order_by(AuditEntry.id))
        assert [entry.detail["held_out"] for entry in entries] == [3, 1, 0]


def test_versions_of_an_earlier_release_name_the_held_out_rows_that_they_changed(
    client: TestClient, engine: Engine, pairs: dict[str, list[int]]
) -> None:
    post(client, "pairs/edits", flip=[pairs["held_out"][0]], drop=[pairs["held_out"][1], pairs["train"][0]])
    post(client, "pairs-edited-1/conversions", conversion="thumbs_from_pairs", name="thumbs")
    post(client, "pairs/edits", flip=pairs["train"], name="trained-on")
    with engine.begin() as connection:
        migrations.downgrade(connection, "0035")
        marked = text("SELECT count(*) FROM datasets WHERE origin ? 'held_out_changes'")
        assert connection.scalar(marked) == 0
        migrations.upgrade(connection, "head")
    for name in ("pairs-edited-1", "thumbs"):
        assert changes(client.get(f"{BASE}/{name}").json()) == [("pairs-edited-1", 1, 1)], name
    assert changes(client.get(f"{BASE}/trained-on").json()) == []
