"""Rows are edited, flipped, removed, flagged and commented; what is pending becomes a new version in one step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import AuditEntry, Project
from steerboard.datasets.edits import api as edits
from steerboard.datasets.review import changes
from steerboard.platform.database import transaction

BASE = "/api/v1/projects/default/datasets"
ROWS = [{"prompt": f"Question {n}?", "chosen": f"Yes {n}", "rejected": f"No {n}", "id": n} for n in range(20)]


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


def send(client: TestClient, method: str, path: str, status: int, body: Any = None) -> Any:
    answer = client.request(method, f"{BASE}/{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


def sample(row: int, **changed: Any) -> dict[str, Any]:
    stored = {key: value for key, value in ROWS[row].items() if key != "id"}
    return {**stored, "prompt": [{"role": "user", "content": ROWS[row]["prompt"]}], **changed}


def change(client: TestClient, row: int, action: str, status: int = 200, **more: Any) -> Any:
    return send(client, "PUT", f"pairs/review/rows/{row}/change", status, {"action": action, **more})


def rows_of(client: TestClient, dataset: str = "pairs", **params: Any) -> list[int]:
    return [item["row"] for item in client.get(f"{BASE}/{dataset}/samples", params=params).json()["items"]]


def test_pending_changes_become_a_version_with_flags_and_comments(
    client: TestClient, sessions: sessionmaker[Session], pairs: dict[str, list[int]]
) -> None:
    gone, edited, flipped, noted = pairs["train"][:4]
    change(client, gone, "remove")
    change(client, edited, "edit", sample=sample(edited, chosen="Surely"))
    change(client, flipped, "flip")
    for row in (gone, noted):
        send(client, "PUT", f"pairs/review/rows/{row}/flag", 200, {"reason": "doubtful"})
    send(client, "POST", f"pairs/review/rows/{noted}/comments", 201, {"text": "Who says so?"})
    summary = send(client, "GET", "pairs/review", 200)
    counts = {name: summary[name] for name in ("edited", "flipped", "removed", "flagged", "commented")}
    assert counts == {"edited": 1, "flipped": 1, "removed": 1, "flagged": 2, "commented": 1}
    assert rows_of(client, marked="changed") == [gone, edited, flipped]
    assert rows_of(client, marked="flagged") == [gone, noted]
    assert rows_of(client, marked="commented", q="question") == [noted]
    pending = send(client, "GET", "pairs/review/changes?limit=2", 200)
    assert [(one["row"], one["change"]["action"]) for one in pending["items"]] == [(gone, "remove"), (edited, "edit")]
    assert pending["items"][1]["after"]["sample"]["chosen"] == "Surely"
    listed = {item["row"]: item["marks"] for item in client.get(f"{BASE}/pairs/samples").json()["items"]}
    assert listed[gone] == {"flagged": True, "comments": 0, "change": "remove"}
    assert listed[pairs["held_out"][0]] is None

    made = send(client, "POST", "pairs/review/version", 201, {})
    assert (made["name"], made["rows"], made["parent_id"] is not None) == ("pairs-edited-1", 19, True)
    assert (made["origin"]["edited"], made["held_out_changes"]) == (1, [])
    samples = {item["extra"]["id"]: item for item in client.get(f"{BASE}/pairs-edited-1/samples").json()["items"]}
    assert gone not in samples
    assert samples[edited]["sample"]["chosen"] == "Surely"
    assert samples[flipped]["sample"]["chosen"] == f"No {flipped}"
    # The notes go with their rows, whose numbers have changed.
    assert [samples[id_]["row"] for id_ in (noted,)] == rows_of(client, "pairs-edited-1", marked="flagged")
    review = send(client, "GET", f"pairs-edited-1/review/rows/{samples[noted]['row']}", 200)
    assert (review["flag"]["reason"], [one["text"] for one in review["comments"]]) == ("doubtful", ["Who says so?"])
    # Nothing is pending any more, and the notes of the first dataset are still there.
    summary = send(client, "GET", "pairs/review", 200)
    assert (summary["edited"], summary["flipped"], summary["removed"], summary["flagged"]) == (0, 0, 0, 2)
    assert send(client, "POST", "pairs/review/version", 409, {})["code"] == "nothing_pending"
    difference = client.get(f"{BASE}/pairs-edited-1/difference?before=pairs").json()
    assert (difference["by"], difference["removed"], difference["changed"]) == ("version", 1, 2)
    with sessions() as session:
        entry = session.scalars(select(AuditEntry).where(AuditEntry.action == "dataset.edit")).one()
        assert entry.detail == {"dataset": "pairs-edited-1", "dropped": 1, "flipped": 1, "edited": 1, "held_out": 0}


def test_nobody_overwrites_a_change_that_they_have_not_seen(client: TestClient, pairs: dict[str, list[int]]) -> None:
    first = change(client, 3, "edit", sample=sample(3, chosen="Perhaps"))
    refused = change(client, 3, "edit", 409, sample=sample(3, chosen="Never"))
    assert refused["code"] == "row_changed"
    second = change(client, 3, "remove", based_on=first["revision"])
    assert second["revision"] != first["revision"]
    stale = send(client, "DELETE", f"pairs/review/rows/3/change?based_on={first['revision']}", 409)
    assert stale["code"] == "row_changed"
    assert send(client, "GET", "pairs/review/rows/3", 200)["change"]["action"] == "remove"
    send(client, "DELETE", f"pairs/review/rows/3/change?based_on={second['revision']}", 204)
    assert send(client, "GET", "pairs/review/rows/3", 200)["change"] is None


def test_a_row_that_is_as_it_was_is_not_pending(client: TestClient, pairs: dict[str, list[int]]) -> None:
    kept = change(client, 3, "edit", sample=sample(3, chosen="Perhaps"))
    assert change(client, 3, "edit", sample=sample(3), based_on=kept["revision"]) is None
    assert change(client, 4, "edit", sample=sample(4)) is None
    assert send(client, "GET", "pairs/review/changes", 200)["items"] == []


def test_an_edit_that_only_swaps_the_sides_is_a_flip_and_held_out_rows_are_not_flipped_in_bulk(
    client: TestClient, pairs: dict[str, list[int]]
) -> None:
    held_out = pairs["held_out"][:2]
    kept = [
        change(client, row, "edit", sample=sample(row, chosen=f"No {row}", rejected=f"Yes {row}")) for row in held_out
    ]
    assert [one["action"] for one in kept] == ["flip", "flip"]
    assert send(client, "POST", "pairs/review/version", 409, {})["code"] == "held_out_flips"
    assert rows_of(client, marked="changed") == held_out
    change(client, held_out[1], "edit", sample=sample(held_out[1], chosen="Well"), based_on=kept[1]["revision"])
    made = send(client, "POST", "pairs/review/version", 201, {"name": "corrected"})
    (named,) = made["held_out_changes"]
    assert (named["dataset"], named["flipped"], named["edited"], named["dropped"]) == ("corrected", 1, 1, 0)


@pytest.mark.parametrize(
    ("changed", "place", "words"),
    [
        ({"chosen": " "}, "chosen", "is empty"),
        ({"rejected": "Yes 3"}, "rejected", "is the same as chosen"),
        (
            {"prompt": [{"role": "assistant", "content": "Hi"}]},
            "prompt",
            "must end with a user turn, or the result of a tool",
        ),
        ({"rating": 4}, "rating", "is not a field of this kind"),
        ({"margin": "big"}, "margin", "is not a number"),
    ],
)
def test_an_edit_that_makes_no_sample_is_refused_by_field(
    changed: dict[str, Any], place: str, words: str, client: TestClient, pairs: dict[str, list[int]]
) -> None:
    refused = change(client, 3, "edit", 422, sample=sample(3, **changed))
    assert refused["code"] == "bad_row"
    assert refused["errors"] == [{"location": place, "message": words}]
    assert rows_of(client, marked="changed") == []


def test_rows_that_are_not_there_and_kinds_that_have_no_sides_are_refused(
    client: TestClient, write_jsonl: Callable[..., Path], import_path: Callable[..., Any], pairs: dict[str, list[int]]
) -> None:
    assert change(client, 20, "remove", 404)["code"] == "not_found"
    assert change(client, 3, "edit", 422)["code"] == "invalid_request"
    import_path(write_jsonl([{"prompt": "Hi"}, {"prompt": "Ho"}], "prompts.jsonl"), name="prompts", kind="prompts")
    path = "prompts/review/rows/0/change"
    assert send(client, "PUT", path, 422, {"action": "flip"})["code"] == "wrong_kind"
    edited = {"prompt": [{"role": "user", "content": "Hey"}], "reference": "Hello"}
    send(client, "PUT", path, 200, {"action": "edit", "sample": edited})
    made = send(client, "POST", "prompts/review/version", 201, {})
    items = client.get(f"{BASE}/{made['name']}/samples").json()["items"]
    assert [item["sample"] for item in items] == [edited, {"prompt": [{"role": "user", "content": "Ho"}]}]
    graded = [{"prompt": "Hi", "response": f"Hello {n}", "reward": float(n)} for n in range(2)]
    import_path(write_jsonl(graded, "graded.jsonl"), name="graded", kind="labelled")
    refused = send(client, "PUT", "graded/review/rows/0/change", 422, {"action": "remove"})
    assert refused["code"] == "wrong_kind"
    send(client, "PUT", "graded/review/rows/0/flag", 200, {"reason": ""})
    assert rows_of(client, "graded", marked="flagged") == [0]


def test_all_changes_are_discarded_at_once_and_one_of_very_many_is_refused(
    client: TestClient, pairs: dict[str, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MOST_CHANGES", 2)
    kept = [change(client, row, "remove") for row in (1, 2)]
    assert change(client, 3, "remove", 409)["code"] == "too_many_changes"
    change(client, 1, "flip", based_on=kept[0]["revision"])
    send(client, "PUT", "pairs/review/rows/5/flag", 200, {"reason": ""})
    assert send(client, "DELETE", "pairs/review/changes", 200) == {"rows": 2}
    assert (rows_of(client, marked="changed"), rows_of(client, marked="flagged")) == ([], [5])


def test_flags_are_removed_and_comments_by_whoever_wrote_them(client: TestClient, pairs: dict[str, list[int]]) -> None:
    path = "pairs/review/rows/5"
    send(client, "PUT", f"{path}/flag", 200, {"reason": "odd"})
    assert send(client, "PUT", f"{path}/flag", 200, {"reason": "very odd"})["reason"] == "very odd"
    send(client, "DELETE", f"{path}/flag", 204)
    assert send(client, "GET", path, 200)["flag"] is None
    made = send(client, "POST", f"{path}/comments", 201, {"text": "Hm"})
    assert send(client, "POST", f"{path}/comments", 422, {"text": " "})["code"] == "invalid_request"
    assert [one["mine"] for one in send(client, "GET", path, 200)["comments"]] == [True]
    send(client, "DELETE", f"pairs/review/comments/{made['id']}", 204)
    assert send(client, "DELETE", f"pairs/review/comments/{made['id']}", 404)["code"] == "not_found"
    assert send(client, "GET", path, 200)["comments"] == []


def test_a_dataset_is_deleted_with_what_is_noted_on_its_rows(client: TestClient, pairs: dict[str, list[int]]) -> None:
    change(client, 3, "remove")
    send(client, "PUT", "pairs/review/rows/5/flag", 200, {"reason": ""})
    send(client, "DELETE", "pairs", 204)


def test_a_version_of_a_large_dataset_is_made_by_a_process_of_its_own(
    client: TestClient, pairs: dict[str, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edits, "_ROWS_AT_ONCE", 1)
    change(client, 3, "remove")
    made = send(client, "POST", "pairs/review/version", 201, {})
    assert (made["name"], made["rows"]) == ("pairs-edited-1", 19)
    assert rows_of(client, marked="changed") == []
    assert send(client, "POST", "pairs/review/version", 409, {})["code"] == "nothing_pending"
    assert send(client, "POST", "pairs/edits", 201, {"drop": [1], "flip": []})["rows"] == 19
