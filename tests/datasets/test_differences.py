"""Two datasets are compared row by row: versions by their records, others by content."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from steerboard.datasets.differences.matching import NONE, RowHashes, match

BASE = "/api/v1/projects/default/datasets"
ROWS = [{"prompt": f"Question {n}?", "chosen": f"Yes {n}", "rejected": f"No {n}"} for n in range(12)]


@pytest.fixture
def pairs(write_jsonl: Callable[..., Path], import_path: Callable[..., Any]) -> Callable[..., None]:
    def run(rows: list[dict[str, Any]], name: str, kind: str = "preferences") -> None:
        import_path(write_jsonl(rows, f"{name}.jsonl"), name=name, kind=kind, clean=False)

    return run


def get(client: TestClient, path: str, status: int = 200, **params: Any) -> Any:
    answer = client.get(f"{BASE}/{path}", params=params)
    assert answer.status_code == status, answer.text
    return answer.json()


def post(client: TestClient, path: str, **body: Any) -> Any:
    answer = client.post(f"{BASE}/{path}", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def counts(client: TestClient, before: str, after: str) -> tuple[str, int, int, int, int]:
    difference = get(client, f"{after}/difference", before=before)
    return difference["by"], difference["added"], difference["removed"], difference["changed"], difference["same"]


def rows_of(client: TestClient, before: str, after: str, limit: int = 2, **params: Any) -> list[tuple[Any, ...]]:
    """(change, row before, row after, fields), page by page."""
    rows: list[tuple[Any, ...]] = []
    cursor = None
    while True:
        asked = {**params, "before": before, "limit": limit, **({"cursor": cursor} if cursor else {})}
        page = get(client, f"{after}/difference/rows", **asked)
        for item in page["items"]:
            places = (side and side["row"] for side in (item["before"], item["after"]))
            rows.append((item["change"], *places, *item["fields"]))
        cursor = page["next"]
        if cursor is None:
            return rows


def test_versions_are_compared_by_their_records(client: TestClient, pairs: Callable[..., None]) -> None:
    pairs(ROWS, "pairs")
    post(client, "pairs/edits", drop=[1, 5], flip=[3])
    post(client, "pairs-edited-1/edits", drop=[0], flip=[1, 2])  # rows 2 and 3 of the first: 3 is as it was again
    assert counts(client, "pairs", "pairs-edited-1") == ("version", 0, 2, 1, 9)
    assert counts(client, "pairs", "pairs-edited-2") == ("version", 0, 3, 1, 8)
    assert rows_of(client, "pairs", "pairs-edited-2") == [
        ("removed", 0, None),
        ("removed", 1, None),
        ("changed", 2, 0, "chosen", "rejected"),
        ("removed", 5, None),
    ]
    assert rows_of(client, "pairs", "pairs-edited-2", change="changed") == [("changed", 2, 0, "chosen", "rejected")]
    # The other way round, and between two versions of the same parent.
    assert counts(client, "pairs-edited-2", "pairs") == ("version", 3, 0, 1, 8)
    assert rows_of(client, "pairs-edited-2", "pairs")[0] == ("added", None, 0)
    post(client, "pairs/edits", drop=[1, 7], name="sibling")
    assert rows_of(client, "pairs-edited-1", "sibling") == [
        ("changed", 2, 2, "chosen", "rejected"),
        ("added", None, 4),
        ("removed", 5, None),
    ]
    (row,) = get(client, "pairs-edited-2/difference/rows", before="pairs", change="changed")["items"]
    assert (row["before"]["sample"]["chosen"], row["after"]["sample"]["chosen"]) == ("Yes 2", "No 2")


def test_the_family_of_a_dataset_is_listed_with_what_each_version_changed(
    client: TestClient, pairs: Callable[..., None]
) -> None:
    pairs([*ROWS, ROWS[0]], "pairs")
    post(client, "pairs/edits", drop=[1, 5], flip=[3])
    post(client, "pairs-edited-1/cleaning")
    pairs(ROWS, "another")
    listed = get(client, "pairs-edited-1/versions")
    assert [(one["name"], one["made_by"], one["dropped"], one["edited"]) for one in listed] == [
        ("pairs", "file", 0, 0),
        ("pairs-edited-1", "edit", 2, 1),
        ("pairs-edited-1-clean-1", "cleaning", 1, 0),
    ]
    assert listed == get(client, "pairs/versions")
    assert [one["name"] for one in get(client, "another/versions")] == ["another"]


def test_other_datasets_are_compared_by_content(client: TestClient, pairs: Callable[..., None]) -> None:
    pairs(ROWS, "first")
    # Moved, repeated, another answer, another prompt, one less, one more.
    later = [ROWS[4], *ROWS[:4], ROWS[0], {**ROWS[5], "chosen": "Maybe"}, {**ROWS[6], "prompt": "Asked again?"}]
    pairs([*later, *ROWS[8:], {"prompt": "New?", "chosen": "a", "rejected": "b"}], "second")
    assert counts(client, "first", "second") == ("content", 2, 1, 2, 9)
    assert rows_of(client, "first", "second") == [
        ("added", None, 5),
        ("changed", 5, 6, "chosen"),
        ("changed", 6, 7, "prompt"),
        ("removed", 7, None),
        ("added", None, 12),
    ]
    assert counts(client, "first", "first") == ("version", 0, 0, 0, 12)


def test_datasets_of_two_kinds_are_not_compared(client: TestClient, pairs: Callable[..., None]) -> None:
    pairs(ROWS, "pairs")
    pairs([{"prompt": "Hi"}], "prompts", "prompts")
    assert get(client, "prompts/difference", 422, before="pairs")["code"] == "different_kinds"
    assert get(client, "prompts/difference", 404, before="nothing")["code"] == "not_found"


def test_a_page_of_large_rows_ends_early_and_goes_on(
    client: TestClient, pairs: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs(ROWS, "first")
    pairs([{**row, "chosen": "x" * 1000} for row in ROWS], "second")
    monkeypatch.setattr("steerboard.datasets.differences.service.PAGE_BYTES", 3000)
    page = get(client, "second/difference/rows", before="first", limit=50)
    assert 1 <= len(page["items"]) < 5
    assert len(rows_of(client, "first", "second", limit=50)) == 12


def test_every_row_has_one_partner_at_most_and_equal_rows_are_never_changed() -> None:
    drawn = random.Random(3)
    for _ in range(200):
        sizes = drawn.randint(0, 12), drawn.randint(0, 12)
        before, after = (
            RowHashes(*(np.array([drawn.randint(0, 6) for _ in range(size)], np.int64) for _ in range(2)))
            for size in sizes
        )
        matching = match(before, after)
        partners = matching.partner[matching.partner != NONE]
        assert len(set(partners.tolist())) == len(partners)
        for row, partner in enumerate(matching.partner.tolist()):
            if partner == NONE:
                assert not matching.changed[row]
                continue
            equal = before.prompts[row] == after.prompts[partner] and before.rest[row] == after.rest[partner]
            assert matching.changed[row] == (not equal)
            assert before.prompts[row] == after.prompts[partner] or before.rest[row] == after.rest[partner]
        # As many rows are the same as there can be.
        one, two = (sorted(zip(side.prompts.tolist(), side.rest.tolist(), strict=True)) for side in (before, after))
        alike = sum(min(one.count(value), two.count(value)) for value in set(one))
        assert int(((matching.partner != NONE) & ~matching.changed).sum()) == alike
