"""Datasets over HTTP: upload, pages, figures, rewards, export and deletion."""

from __future__ import annotations

import gzip
import io
import json
import os
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import AuditEntry, Project
from steerboard.platform.events.tables import Event

BASE = "/api/v1/projects/default/datasets"


def jsonl(rows: list[dict[str, Any]]) -> io.BytesIO:
    return io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode())


def labelled_rows(count: int) -> list[dict[str, Any]]:
    return [{"prompt": f"Hi {i}", "response": f"a{i}", "gpt4_score": i} for i in range(count)]


def upload(client: TestClient, rows: list[dict[str, Any]], name: str = "rows", **fields: str) -> Any:
    return client.post(f"{BASE}/import", data={"name": name, **fields}, files={"file": ("rows.jsonl", jsonl(rows))})


def pages(client: TestClient, path: str, **params: Any) -> list[Any]:
    items: list[Any] = []
    cursor = None
    while True:
        page = client.get(path, params={**params, "cursor": cursor} if cursor else params).json()
        items += page["items"]
        cursor = page["next"]
        if cursor is None:
            return items


def test_an_upload_becomes_a_dataset_with_its_figures_an_event_and_an_audit_row(
    client: TestClient, sessions: sessionmaker[Session]
) -> None:
    answer = upload(client, labelled_rows(20), kind="labelled", mapping="reward=gpt4_score")
    assert answer.status_code == 201
    report = answer.json()
    assert (report["read"], report["rows"], report["columns"]["reward"]) == (20, 20, "gpt4_score")
    dataset = client.get(f"{BASE}/rows").json()
    assert dataset == client.get(f"{BASE}/{dataset['id']}").json()
    assert dataset["normaliser"]["n"] == 20
    assert dataset["rewards"]["p50"] == 9.5
    assert dataset["response_characters"]["max"] == 3
    with sessions() as session:
        assert [event.type for event in session.scalars(select(Event))] == ["dataset.created"]
        assert "dataset.import" in session.scalars(select(AuditEntry.action)).all()


def test_a_refused_upload_is_a_problem_document_with_its_lines(client: TestClient) -> None:
    rows = [*labelled_rows(3), {"prompt": "Hi", "response": "a", "gpt4_score": None}]
    answer = upload(client, rows, kind="labelled", mapping="reward=gpt4_score")
    assert answer.status_code == 422
    problem = answer.json()
    assert (problem["code"], problem["errors"][0]["location"]) == ("bad_row", "line 4")
    assert problem["bad_counts"] == {"reward: is null": 1}
    assert client.get(BASE).json()["items"] == []


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"kind": "poems"}, "invalid_request"),
        ({"bad_rows": "maybe"}, "invalid_request"),
        ({"mapping": "reward"}, "invalid_request"),
        ({"surprise": "1"}, "invalid_request"),
        ({"hub": "org/name"}, "invalid_request"),
        ({"mapping": "prompt=nope"}, "unknown_column"),
        ({"name": "../x"}, "invalid_name"),
    ],
)
def test_wrong_fields_are_named(client: TestClient, fields: dict[str, str], code: str) -> None:
    answer = upload(client, labelled_rows(3), **fields)
    assert (answer.status_code, answer.json()["code"]) == (422, code)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("form", ["jsonl.gz", "csv", "parquet"])
def test_every_format_can_be_uploaded_from_memory_and_from_disk(client: TestClient, form: str, large: bool) -> None:
    # Text that does not compress: more than a megabyte goes to disk on the server.
    rows = [{"prompt": f"{i}", "response": os.urandom(1000).hex()} for i in range(3000 if large else 3)]
    if form == "csv":
        content = ("prompt,response\n" + "".join(f"{r['prompt']},{r['response']}\n" for r in rows)).encode()
    elif form == "parquet":
        out = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows), out)
        content = out.getvalue()
    else:
        content = gzip.compress(jsonl(rows).read())
    answer = client.post(f"{BASE}/import", data={"name": "rows"}, files={"file": ("upload", content)})
    assert answer.status_code == 201, answer.text
    assert (answer.json()["rows"], answer.json()["format"]) == (len(rows), form)


def test_the_same_key_imports_once(client: TestClient) -> None:
    answers = [
        client.post(
            f"{BASE}/import",
            data={"name": "rows"},
            files={"file": ("rows.jsonl", jsonl(labelled_rows(3)))},
            headers={"Idempotency-Key": "once"},
        )
        for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    assert upload(client, labelled_rows(3)).json()["code"] == "name_taken"


def test_lists_are_paged_and_filtered(client: TestClient) -> None:
    for i in range(5):
        upload(client, [{"prompt": f"Hi {i}"}], f"prompts-{i}")
    upload(client, labelled_rows(3), "graded", mapping="reward=gpt4_score", kind="labelled")
    assert [d["name"] for d in pages(client, BASE, limit=2)] == ["graded", *(f"prompts-{i}" for i in range(4, -1, -1))]
    assert [d["name"] for d in pages(client, BASE, kind="labelled")] == ["graded"]
    assert [d["name"] for d in pages(client, BASE, name="S-3")] == ["prompts-3"]


def test_samples_come_in_the_order_of_their_rows_with_their_rewards(client: TestClient) -> None:
    upload(client, labelled_rows(40), mapping="reward=gpt4_score", kind="labelled")
    samples = pages(client, f"{BASE}/rows/samples", limit=7)
    assert [sample["row"] for sample in samples] == list(range(40))
    assert [sample["reward"] for sample in samples] == list(range(40))
    split = {name: pages(client, f"{BASE}/rows/samples", split=name) for name in ("train", "held_out")}
    assert sorted(s["row"] for part in split.values() for s in part) == list(range(40))
    assert {s["split"] for s in split["held_out"]} <= {"held_out"}
    rewards = pages(client, f"{BASE}/rows/rewards/rows", limit=9)
    assert [reward["value"] for reward in rewards] == list(range(40))


def test_grades_are_imported_weighed_and_pinned(client: TestClient) -> None:
    upload(client, [{"prompt": f"Hi {i}", "response": "a"} for i in range(4)])
    for name, factor in (("a", 1.0), ("b", 10.0)):
        grades = "row,value\n" + "".join(f"{row},{row * factor}\n" for row in range(4))
        answer = client.post(f"{BASE}/rows/rewards", data={"source": name}, files={"file": ("g.csv", grades.encode())})
        assert answer.status_code == 201
        assert answer.json()["figures"]["mean"] == 1.5 * factor
    weighted = client.post(
        f"{BASE}/rows/rewards/weighted", json={"name": "ab", "weights": {"a": 1, "b": 0.5}, "scale": "raw"}
    )
    assert weighted.json()["figures"]["high"] == 18.0
    labelled = client.post(f"{BASE}/rows/labelled", json={"name": "labelled", "source": "ab"})
    assert labelled.status_code == 201
    assert labelled.json()["normaliser"]["mean"] == 9.0
    assert {s["name"] for s in client.get(f"{BASE}/rows/rewards").json()} == {"a", "b", "ab"}
    assert client.delete(f"{BASE}/rows").json()["code"] == "in_use"


def test_an_export_is_imported_back_to_the_same_hash(client: TestClient) -> None:
    first = upload(client, labelled_rows(10), mapping="reward=gpt4_score", kind="labelled").json()["dataset"]
    for form in ("jsonl", "jsonl.gz", "parquet"):
        answer = client.get(f"{BASE}/rows/export", params={"format": form})
        assert f"rows.{form}" in answer.headers["content-disposition"]
        again = client.post(f"{BASE}/import", data={"name": f"x-{form}"}, files={"file": ("x", answer.content)}).json()
        assert again["dataset"]["content_hash"] == first["content_hash"]


def test_a_deleted_dataset_is_gone_and_its_name_free(client: TestClient) -> None:
    upload(client, labelled_rows(3))
    assert client.delete(f"{BASE}/rows").status_code == 204
    assert client.get(f"{BASE}/rows").status_code == 404
    assert upload(client, labelled_rows(3)).status_code == 201


def test_another_projects_datasets_are_not_found(client: TestClient, sessions: sessionmaker[Session]) -> None:
    dataset = upload(client, labelled_rows(3)).json()["dataset"]
    with sessions() as session, session.begin():
        session.add(Project(name="other", split_salt="x", held_out_fraction=0.1))
    for ref in ("rows", dataset["id"]):
        for path in ("", "/samples", "/rewards", "/export"):
            assert client.get(f"/api/v1/projects/other/datasets/{ref}{path}").status_code == 404


def test_a_stranger_uploads_nothing(client: TestClient) -> None:
    answer = client.post(
        f"{BASE}/import", data={"name": "x"}, files={"file": ("x", b"{}")}, headers={"Authorization": "Bearer wrong"}
    )
    assert answer.status_code == 401
