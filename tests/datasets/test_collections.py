"""Collections: rows come one by one, nothing is lost, and a dataset is what was there at one moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import AuditEntry, Project

PROJECT = "/api/v1/projects/default"
BASE = f"{PROJECT}/collections"
PAIR = {"prompt": "Hi", "chosen": "Hello", "rejected": "Go away"}


def create(client: TestClient, name: str = "good", kind: str = "instructions") -> Any:
    answer = client.post(BASE, json={"name": name, "kind": kind})
    assert answer.status_code == 201, answer.text
    return answer.json()


def add(client: TestClient, number: int, **body: Any) -> Any:
    sample = {"prompt": f"Question {number}", "response": f"Answer {number}"}
    answer = client.post(f"{BASE}/good/rows", json={"sample": sample, **body})
    assert answer.status_code == 201, answer.text
    return answer.json()


def responses(client: TestClient, dataset: str) -> list[str]:
    items = client.get(f"{PROJECT}/datasets/{dataset}/samples").json()["items"]
    return [item["sample"]["response"] for item in items]


def test_a_frozen_collection_is_a_dataset_with_its_provenance(client: TestClient) -> None:
    create(client)
    assert add(client, 0, provenance={"comparison": "c1", "source": "playground"})["rows"] == 1
    assert add(client, 1)["rows"] == 2
    made = client.post(f"{BASE}/good/dataset")
    assert made.status_code == 201, made.text
    dataset = made.json()
    assert (dataset["name"], dataset["kind"], dataset["rows"]) == ("good-v1", "instructions", 2)
    assert (dataset["origin"]["type"], dataset["origin"]["collection"]) == ("collection", "good")
    samples = client.get(f"{PROJECT}/datasets/good-v1/samples").json()["items"]
    assert [(item["sample"], item["extra"]) for item in samples] == [
        (
            {"prompt": [{"role": "user", "content": "Question 0"}], "response": "Answer 0"},
            {"provenance": {"comparison": "c1", "source": "playground"}},
        ),
        ({"prompt": [{"role": "user", "content": "Question 1"}], "response": "Answer 1"}, None),
    ]
    (listed,) = client.get(BASE).json()
    assert (listed["rows"], listed["frozen_rows"]) == (2, 2)
    assert [(frozen["id"], frozen["name"], frozen["rows"]) for frozen in listed["datasets"]] == [
        (dataset["id"], "good-v1", 2)
    ]


def test_a_collection_goes_on_growing_and_its_datasets_stay_as_they_are(client: TestClient) -> None:
    create(client)
    add(client, 0)
    client.post(f"{BASE}/good/dataset")
    add(client, 1)
    assert (client.get(f"{BASE}/good").json()["frozen_rows"], responses(client, "good-v1")) == (1, ["Answer 0"])
    assert client.post(f"{BASE}/good/dataset", json={"name": "mine"}).json()["rows"] == 2
    assert client.post(f"{BASE}/good/dataset").json()["name"] == "good-v3"
    assert client.post(f"{BASE}/good/dataset", json={"name": "mine"}).json()["code"] == "name_taken"
    assert client.delete(f"{PROJECT}/datasets/good-v3").status_code == 204
    collection = client.get(f"{BASE}/good").json()
    assert [frozen["name"] for frozen in collection["datasets"]] == ["mine", "good-v1"]
    assert (collection["rows"], collection["frozen_rows"]) == (2, 0)
    assert client.post(f"{BASE}/good/dataset").json()["name"] == "good-v3"


def test_a_removed_row_is_left_out_and_comes_back_to_its_place(client: TestClient) -> None:
    create(client)
    rows = [add(client, number)["id"] for number in range(3)]
    removed = client.delete(f"{BASE}/good/rows/{rows[1]}").json()
    assert removed["rows"] == 2
    assert removed["removed_at"] is not None
    assert [row["id"] for row in client.get(f"{BASE}/good/rows").json()["items"]] == [rows[2], rows[0]]
    assert [row["id"] for row in client.get(f"{BASE}/good/rows?removed=true").json()["items"]] == [rows[1]]
    client.post(f"{BASE}/good/dataset")
    assert client.post(f"{BASE}/good/rows/{rows[1]}/restore").json()["rows"] == 3
    client.post(f"{BASE}/good/dataset")
    assert responses(client, "good-v1") == ["Answer 0", "Answer 2"]
    assert responses(client, "good-v2") == ["Answer 0", "Answer 1", "Answer 2"]


def test_rows_are_read_page_by_page(client: TestClient) -> None:
    create(client)
    rows = [add(client, number)["id"] for number in range(5)]
    seen: list[str] = []
    cursor = None
    while True:
        page = client.get(f"{BASE}/good/rows", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        seen += [row["id"] for row in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == rows[::-1]


def test_rows_added_at_the_same_moment_all_have_a_place(client: TestClient) -> None:
    create(client)
    with ThreadPoolExecutor(6) as pool:
        added = list(pool.map(lambda number: add(client, number), range(12)))
    assert sorted(row["place"] for row in added) == list(range(12))
    assert client.post(f"{BASE}/good/dataset").json()["rows"] == 12


def test_an_empty_collection_becomes_no_dataset(client: TestClient) -> None:
    create(client)
    row = add(client, 0)["id"]
    client.delete(f"{BASE}/good/rows/{row}")
    refused = client.post(f"{BASE}/good/dataset")
    assert (refused.status_code, refused.json()["code"]) == (422, "empty_selection")


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"sample": PAIR}, "sample"),
        ({"sample": {"prompt": "Hi", "response": " "}}, "sample"),
        ({"sample": {"prompt": "Hi", "response": "a\x00"}}, "sample"),
        ({"sample": {"prompt": "Hi", "response": "x" * (9 << 20)}}, "sample"),
        ({"sample": {"prompt": "Hi", "response": "a"}, "provenance": {"a": "\x00"}}, "provenance"),
        ({"sample": {"prompt": "Hi", "response": "a"}, "provenance": {"a": 2**70}}, "provenance"),
    ],
)
def test_a_row_that_no_dataset_could_hold_is_refused(client: TestClient, body: dict[str, Any], place: str) -> None:
    create(client)
    refused = client.post(f"{BASE}/good/rows", json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_row")
    assert [fault["location"] for fault in refused.json()["errors"]] == [place]
    assert client.get(f"{BASE}/good").json()["rows"] == 0


def test_preferences_are_collected_too(client: TestClient) -> None:
    create(client, "pairs", "preferences")
    client.post(f"{BASE}/pairs/rows", json={"sample": {**PAIR, "margin": 0.5}})
    assert client.post(f"{BASE}/pairs/dataset").json()["kind"] == "preferences"
    (item,) = client.get(f"{PROJECT}/datasets/pairs-v1/samples").json()["items"]
    assert (item["sample"]["chosen"], item["sample"]["margin"]) == ("Hello", 0.5)


def test_every_change_is_in_the_audit_log_and_names_are_taken_once(
    client: TestClient, sessions: sessionmaker[Session]
) -> None:
    create(client)
    assert client.post(BASE, json={"name": "good", "kind": "preferences"}).json()["code"] == "name_taken"
    row = add(client, 0)["id"]
    client.delete(f"{BASE}/good/rows/{row}")
    client.post(f"{BASE}/good/rows/{row}/restore")
    client.post(f"{BASE}/good/dataset")
    with sessions() as session:
        actions = list(session.scalars(select(AuditEntry.action).order_by(AuditEntry.id)))
    assert actions == [
        "collection.create",
        "collection.add_row",
        "collection.remove_row",
        "collection.restore_row",
        "collection.freeze",
    ]


def test_another_projects_collections_are_not_found(client: TestClient, sessions: sessionmaker[Session]) -> None:
    made = create(client)
    row = add(client, 0)["id"]
    with sessions() as session, session.begin():
        session.add(Project(name="other", split_salt="x", held_out_fraction=0.1))
    other = "/api/v1/projects/other/collections"
    for ref in ("good", made["id"], "a%00b"):
        assert client.get(f"{other}/{ref}").status_code == 404
        assert client.get(f"{other}/{ref}/rows").status_code == 404
        assert client.delete(f"{other}/{ref}/rows/{row}").status_code == 404
        assert client.post(f"{other}/{ref}/dataset").status_code == 404
    create(client, "second")
    assert client.delete(f"{BASE}/second/rows/{row}").status_code == 404
    assert client.get(f"{BASE}/good").json()["rows"] == 1
