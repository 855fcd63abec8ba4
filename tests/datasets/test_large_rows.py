"""Rows of megabytes: a page of them is bounded by their size, and marked."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import orjson
import pytest
from fastapi.testclient import TestClient

from steerboard.platform import row_sizes

BASE = "/api/v1/projects/default"
LARGE = 3 << 20


def texts(rows: int) -> list[str]:
    return [f"{row} " + "word " * (LARGE // 5 if row % 2 == 0 else 1) for row in range(rows)]


@pytest.fixture
def dataset(client: TestClient) -> list[str]:
    """`large`: every second row has an answer of three megabytes. Returns the answers."""
    answers = texts(12)
    lines = [orjson.dumps({"prompt": f"p{row}", "response": answer}) for row, answer in enumerate(answers)]
    made = client.post(
        f"{BASE}/datasets/import", data={"name": "large"}, files={"file": ("a.jsonl", b"\n".join(lines))}
    )
    assert made.status_code == 201, made.text
    return answers


def pages(client: TestClient, path: str, **params: Any) -> list[dict[str, Any]]:
    all_pages: list[dict[str, Any]] = []
    while True:
        answer = client.get(f"{BASE}/{path}", params=params)
        assert answer.status_code == 200, answer.text
        all_pages.append({**answer.json(), "bytes": len(answer.content)})
        if all_pages[-1]["next"] is None:
            return all_pages
        params["cursor"] = all_pages[-1]["next"]


@pytest.mark.parametrize(
    "filters",
    [
        pytest.param({}, id="plain"),
        pytest.param({"q": "word"}, id="word", marks=pytest.mark.long),
        pytest.param({"q": '"word word"'}, id="phrase", marks=pytest.mark.long),
    ],
)
def test_a_page_of_large_rows_ends_early_and_all_pages_have_all_rows(
    client: TestClient, dataset: list[str], filters: dict[str, str]
) -> None:
    all_pages = pages(client, "datasets/large/samples", limit=50, **filters)
    rows = [sample for page in all_pages for sample in page["items"]]
    wanted = [row for row in range(12) if not filters or "word word" in dataset[row] or "phrase" not in filters]
    wanted = [row for row in wanted if filters.get("q") != '"word word"' or row % 2 == 0]
    assert [sample["row"] for sample in rows] == wanted
    # Six rows of 3 MB are more than one page of 16.
    assert len(all_pages) > 1
    assert max(page["bytes"] for page in all_pages) < 2 * 12 * row_sizes.ROW_BYTES
    for sample in rows:
        text = sample["sample"]["response"]
        assert sample["cut"] == (sample["row"] % 2 == 0)
        if sample["cut"]:
            assert text.endswith("…")
            assert dataset[sample["row"]].startswith(text[:-1])
            assert len(text) > 1000
        else:
            assert text == dataset[sample["row"]]


def test_a_large_row_is_there_as_a_whole_for_who_asks(client: TestClient, dataset: list[str]) -> None:
    answer = client.get(f"{BASE}/datasets/large/samples", params={"from_row": 4, "limit": 1, "whole": True}).json()
    (sample,) = answer["items"]
    assert (sample["row"], sample["cut"]) == (4, False)
    assert sample["sample"]["response"] == dataset[4]


def test_a_collection_with_large_rows_is_paged_by_size(client: TestClient) -> None:
    client.post(f"{BASE}/collections", json={"name": "kept", "kind": "instructions"})
    for answer in texts(14):
        made = client.post(f"{BASE}/collections/kept/rows", json={"sample": {"prompt": "p", "response": answer}})
        assert made.status_code == 201, made.text
    all_pages = pages(client, "collections/kept/rows", limit=50)
    assert len(all_pages) > 1
    rows = [row for page in all_pages for row in page["items"]]
    assert sorted(row["place"] for row in rows) == list(range(14))
    assert [row["cut"] for row in rows] == [len(row["sample"]["response"]) > 100 for row in rows]


def test_a_row_of_many_small_values_is_cut_too() -> None:
    dialogue = [{"role": "user", "content": "a" * 20} for _ in range(100_000)]
    shown = row_sizes.shown_part({"prompt": dialogue, "response": "b", "nothing": None})
    assert len(json.dumps(shown)) < row_sizes.ROW_BYTES
    assert shown["response"] == "b"
    assert shown["prompt"][:100] == dialogue[:100]


@pytest.mark.parametrize("ranges", ["bytes=999999999-", "bytes=5-1", "nonsense", "bytes=0-10", "bytes=0-1,3-4"])
def test_an_export_leaves_no_file_behind_whatever_range_is_asked_for(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranges: str
) -> None:
    client.post(
        f"{BASE}/datasets/import", data={"name": "small"}, files={"file": ("a.jsonl", b'{"prompt": "a"}\n' * 3)}
    )
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    for format in ("jsonl", "jsonl.gz", "parquet"):
        whole = client.get(f"{BASE}/datasets/small/export", params={"format": format})
        part = client.get(f"{BASE}/datasets/small/export", params={"format": format}, headers={"Range": ranges})
        assert (part.status_code, len(part.content)) == (200, len(whole.content))
        assert f'filename="small.{format}"' in part.headers["content-disposition"]
        assert list(temporary.iterdir()) == []
