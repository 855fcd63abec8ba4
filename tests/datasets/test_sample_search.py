"""Filters, orders and counts of the samples list equal a look through every row."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets import background, service
from steerboard.datasets.derived_tables import SearchSegment, SearchWord
from steerboard.datasets.samples import selection
from steerboard.datasets.search import indexing, parts
from steerboard.datasets.search import query as search
from steerboard.datasets.search.excerpts import excerpts, pattern_of
from steerboard.platform.database import transaction

BASE = "/api/v1/projects/default/datasets"
RANDOM = random.Random(11)
COMMON = ["the", "of", "Straße", "Привет", "and/or", "end.Start", "<b>bold</b>", "don't", "covid-19", "snake_case"]
TEXTS = [" ".join(RANDOM.choices(COMMON, k=RANDOM.randint(1, 5))) for _ in range(700)]
ROWS = [
    {
        "prompt": [{"role": "user", "content": f"row{i} {TEXTS[i]}"}],
        "response": f"{RANDOM.choice(COMMON)}. No{i % 50}",
        **({"source": "ab"[i % 2]} if i % 5 else {}),
    }
    for i in range(len(TEXTS))
]
VALUES = [round(RANDOM.gauss(0, 1), 1) for _ in ROWS]  # many ties


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def texts(row: dict[str, Any]) -> list[list[str]]:
    return [words(row["prompt"][0]["content"]), words(row["response"])]


def has_phrase(row: dict[str, Any], phrase: str) -> bool:
    wanted = words(phrase)
    n = len(wanted)
    return any(text[i : i + n] == wanted for text in texts(row) for i in range(len(text)))


@pytest.fixture
def labelled(
    client: TestClient,
    sessions: sessionmaker[Session],
    project: Project,
    write_jsonl: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """700 rows in segments of 256, not indexed yet, graded and pinned."""
    monkeypatch.setattr(indexing, "SEGMENT_ROWS", 256)
    graded = [{"row": row, "value": value} for row, value in enumerate(VALUES)]
    with transaction(sessions) as session:
        answers = service.register_rows(
            session, project, name="answers", kind="instructions", path=write_jsonl(ROWS), run_id=None
        )
        source = service.imported_source(session, project, "judge")
        service.record_rewards(session, answers, source, write_jsonl(graded, "rewards.jsonl"))
        service.pin_labelled(session, project, name="labelled", dataset=answers, source=source, run_id=None)


def rows_of(client: TestClient, limit: int = 60, dataset: str = "labelled", **params: Any) -> list[int]:
    return [item["row"] for item in items_of(client, limit, dataset, **params)]


def items_of(client: TestClient, limit: int, dataset: str, **params: Any) -> Iterator[dict[str, Any]]:
    cursor = None
    while True:
        asked = {**params, "limit": limit, **({"cursor": cursor} if cursor else {})}
        answer = client.get(f"{BASE}/{dataset}/samples", params=asked)
        assert answer.status_code == 200, answer.text
        yield from answer.json()["items"]
        cursor = answer.json()["next"]
        if cursor is None:
            return


def counted(client: TestClient, dataset: str = "labelled", **params: Any) -> int:
    answer = client.get(f"{BASE}/{dataset}/samples/count", params=params).json()
    assert answer["exact"]
    return int(answer["rows"])


QUERIES = [
    "the",
    "THE of",
    "straße",
    "ПРИВЕТ",
    "or and",
    "start end",
    "bold",
    "covid 19",
    "case",
    "row17",
    "no3 the",
    "zzz",
]


@pytest.mark.usefixtures("labelled")
@pytest.mark.parametrize("indexed", [0, 1, 3])
def test_a_search_finds_rows_with_every_word_however_far_the_index_is(
    client: TestClient, sessions: sessionmaker[Session], indexed: int
) -> None:
    for _ in range(indexed):
        with transaction(sessions) as session:
            assert indexing.index_next(session, set())
    shown = client.get(f"{BASE}/labelled/statistics").json()["search"]
    assert shown == {"ready": indexed == 3, "done": min(256 * indexed, len(ROWS))}
    for query in QUERIES:
        wanted = set(words(query))
        expected = [i for i, row in enumerate(ROWS) if wanted <= set(itertools.chain(*texts(row)))]
        assert rows_of(client, q=query) == expected, query
        assert counted(client, q=query) == len(expected)
    assert rows_of(client, q="row17") == [17]
    assert len(rows_of(client, limit=1000, q="!?")) == len(ROWS)


@pytest.mark.usefixtures("labelled")
def test_quoted_words_stand_side_by_side_even_when_a_page_reads_only_a_few_samples(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "_READ_FOR_PHRASES", 40)
    monkeypatch.setattr(selection, "_READ_AT_ONCE", 7)
    for phrase in ("the of", "of the the", "and or end start", "don t", "19 the"):
        expected = [i for i, row in enumerate(ROWS) if has_phrase(row, phrase)]
        assert rows_of(client, limit=9, q=f'"{phrase}"') == expected
        mixed = [i for i in expected if "bold" in set(itertools.chain(*texts(ROWS[i])))]
        assert rows_of(client, limit=9, q=f'bold "{phrase}"') == mixed
    answer = client.get(f"{BASE}/labelled/samples/count", params={"q": '"the of"'}).json()
    assert not answer["exact"]
    monkeypatch.undo()
    assert counted(client, q='"the of"') == sum(has_phrase(row, "the of") for row in ROWS)


@pytest.mark.usefixtures("labelled")
@pytest.mark.parametrize("indexed", [0, 1, 3])
def test_a_part_of_a_text_is_found_within_words_and_across_signs(
    client: TestClient, sessions: sessionmaker[Session], indexed: int
) -> None:
    for _ in range(indexed):
        with transaction(sessions) as session:
            indexing.index_next(session, set())
    whole = [[row["prompt"][0]["content"], row["response"]] for row in ROWS]
    drawn = random.Random(5)
    queries = ["ase", "раЖЕ"[:2], "RASSE", "d/o", "b>bol", "d. no1", "e_case.", "row17", "on't co", "zzz", "t", "d-1"]
    for _ in range(25):
        text_ = drawn.choice(drawn.choice(whole))
        start = drawn.randrange(len(text_))
        queries.append(text_[start : start + drawn.randint(1, 9)])
    for query in queries:
        wanted = query.strip().lower()
        if not words(wanted):
            continue
        expected = [i for i, row in enumerate(whole) if any(wanted in text_.lower() for text_ in row)]
        assert rows_of(client, limit=700, q=query, match="part") == expected, query
    if indexed == 3:
        assert counted(client, q="ase", match="part") > 0  # exact, though no text is read
    refused = client.get(f"{BASE}/labelled/samples", params={"q": " <>", "match": "part"})
    assert (refused.status_code, refused.json()["code"]) == (422, "nothing_to_search")


@pytest.mark.usefixtures("labelled")
def test_a_part_that_very_many_words_have_is_looked_for_in_the_rows(
    client: TestClient, sessions: sessionmaker[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "MOST_WORDS", 20)
    background.prepare_all(sessions, Event())
    expected = [i for i, text_ in enumerate(TEXTS) if "ro" in f"row{i} {text_} {ROWS[i]['response']}".lower()]
    assert rows_of(client, q="ro", match="part") == expected
    assert not client.get(f"{BASE}/labelled/samples/count", params={"q": "ro", "match": "part"}).json()["exact"]


@pytest.mark.usefixtures("labelled")
def test_a_hit_comes_with_the_texts_around_its_words(client: TestClient) -> None:
    def shown(**params: Any) -> list[tuple[str, int | None, str]]:
        (item,) = client.get(f"{BASE}/labelled/samples", params={"limit": 1, **params}).json()["items"]
        marked = []
        for excerpt in item["excerpts"]:
            text_ = "".join(f"[{part['text']}]" if part["hit"] else part["text"] for part in excerpt["parts"])
            marked.append((excerpt["field"], excerpt["turn"], text_))
        return marked

    prompt = ROWS[17]["prompt"][0]["content"]  # type: ignore[index]
    assert shown(q="ROW17") == [("prompt", 0, prompt.replace("row17", "[row17]"))]
    assert shown(q="ow17", match="part")[0][2].startswith("r[ow17]")
    assert shown(q='"end start"', from_row=0)[0][2].count("[end.Start]") >= 1
    (plain,) = client.get(f"{BASE}/labelled/samples", params={"limit": 1}).json()["items"]
    assert plain["excerpts"] is None


def test_an_excerpt_begins_shortly_before_the_first_hit_and_marks_all_that_it_has_room_for() -> None:
    text_ = "a " * 100 + "needle and Needles, needle! " + "b " * 100
    pattern = pattern_of("needle", "words")
    assert pattern is not None
    (excerpt,) = excerpts({"prompt": [{"content": "none"}], "chosen": text_}, pattern, 80)
    marked = "".join(f"[{part.text}]" if part.hit else part.text for part in excerpt.parts)
    assert marked == "…" + "a " * 8 + "[needle] and Needles, [needle]! " + "b " * 18 + "…"
    assert (excerpt.field, excerpt.turn) == ("chosen", None)


@pytest.mark.usefixtures("labelled")
@pytest.mark.parametrize("order", ["row", "reward_asc", "reward_desc"])
@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"reward_min": 0.5},
        {"reward_max": 0.5},
        {"reward_min": 0.3, "reward_max": 0.3},
        {"reward_min": -0.2, "reward_max": 0.4, "source": "a", "split": "train", "from_row": 100, "q": "the"},
        {"reward_min": 99},
        {"source": "imported"},
        {"source": "nobody"},
        {"split": "held_out"},
        {"from_row": 650},
        {"from_row": 10_000},
    ],
)
def test_filters_and_orders_equal_a_look_through_all_rows(
    client: TestClient, order: str, filters: dict[str, Any]
) -> None:
    page = list(items_of(client, 1000, "labelled"))
    expected = [
        (item["reward"], item["row"])
        for item in page
        if item["reward"] >= filters.get("reward_min", -9e9)
        and item["reward"] <= filters.get("reward_max", 9e9)
        and item["split"] == filters.get("split", item["split"])
        and item["row"] >= filters.get("from_row", 0)
        and ("source" not in filters or item["sample"].get("source", "imported") == filters["source"])
        and ("q" not in filters or "the" in itertools.chain(*texts(item["sample"])))
    ]
    if order != "row":
        expected.sort(reverse=order == "reward_desc")
    shown = [(item["reward"], item["row"]) for item in items_of(client, 37, "labelled", order=order, **filters)]
    assert shown == expected
    assert counted(client, **filters) == len(expected)


@pytest.mark.usefixtures("labelled")
def test_rewards_that_nothing_pins_are_named(client: TestClient) -> None:
    assert len(rows_of(client, dataset="answers", reward_source="judge", reward_min=1.0)) == sum(
        value >= 1.0 for value in VALUES
    )
    first = client.get(f"{BASE}/answers/samples", params={"reward_source": "judge", "order": "reward_desc"}).json()
    assert first["items"][0]["reward"] == max(VALUES)
    for params, status, code in (
        ({"reward_min": 1}, 422, "no_rewards"),
        ({"order": "reward_asc"}, 422, "no_rewards"),
        ({"reward_min": 1, "reward_source": "nobody"}, 404, "not_found"),
        ({"reward_min": "nan"}, 422, "invalid_request"),
        ({"q": "a\x00b"}, 422, "invalid_request"),
        ({"from_row": 2**31}, 422, "invalid_request"),
        ({"q": "the", "cursor": "x"}, 422, "bad_cursor"),
    ):
        answer = client.get(f"{BASE}/answers/samples", params=params)
        assert (answer.status_code, answer.json()["code"]) == (status, code), params


@pytest.mark.usefixtures("labelled")
def test_a_large_dataset_says_that_its_index_is_not_ready(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_SCANNED_ROWS", 100)
    for path in ("samples", "samples/count"):
        answer = client.get(f"{BASE}/labelled/{path}", params={"q": "the"})
        assert (answer.status_code, answer.json()["code"]) == (409, "search_not_ready")
        assert (answer.json()["done"], answer.json()["rows"]) == (0, len(ROWS))


@pytest.mark.usefixtures("labelled")
def test_indexing_that_is_killed_between_and_within_segments_goes_on_where_it_was(
    client: TestClient, sessions: sessionmaker[Session]
) -> None:
    with transaction(sessions) as session:
        indexing.index_next(session, set())
    with sessions() as dying:
        indexing.index_next(dying, set())
        with transaction(sessions) as other:  # takes the next one, not the same
            indexing.index_next(other, set())
            assert not indexing.index_next(other, set())
        pid = dying.scalar(text("SELECT pg_backend_pid()"))
        with transaction(sessions) as session:
            session.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
        dying.invalidate()
    with sessions() as session:
        assert session.scalar(select(func.count()).where(SearchSegment.ready)) == 2
    background.prepare_all(sessions, Event())
    with sessions() as session:
        assert session.scalar(select(func.count()).where(~SearchSegment.ready)) == 0
        held = session.scalars(select(func.octet_length(SearchWord.rows)).where(SearchWord.word == "row17")).all()
        assert held == [2]
    assert rows_of(client, q="row17") == [17]


@pytest.mark.long
def test_huge_and_odd_texts_are_indexed(
    client: TestClient, sessions: sessionmaker[Session], project: Project, write_jsonl: Callable[..., Path]
) -> None:
    many = " ".join(f"w{i:x}q" for i in range(400_000))  # too many words for one tsvector
    rows = [{"prompt": many}, {"prompt": "z" * 5000 + " tail"}, {"prompt": "\u200b — “quoted” 你好 \U0001f600 e\u0301"}]
    with transaction(sessions) as session:
        service.register_rows(session, project, name="odd", kind="prompts", path=write_jsonl(rows), run_id=None)
    background.prepare_all(sessions, Event())
    with sessions() as session:
        assert session.scalar(select(func.count()).where(~SearchSegment.ready)) == 0
    for query, row in ((f"w{399_999:x}q", 0), (f"w{123_456:x}q w5q", 0), ("tail", 1), ("QUOTED", 2), ("你好", 2)):
        assert rows_of(client, dataset="odd", q=query) == [row], query


def test_filters_are_kept_by_name_for_every_dataset_of_the_project(client: TestClient) -> None:
    url = "/api/v1/projects/default/sample-views"
    query = {"q": "tea", "match": "part", "split": "train", "marked": "flagged"}
    kept = client.put(f"{url}/doubtful", json={"query": query})
    assert kept.status_code == 200, kept.text
    unset = {"source": None, "reward_min": None, "reward_max": None}
    (view,) = client.get(url).json()
    assert (view["name"], view["query"]) == ("doubtful", {**query, **unset})
    # A view of another list may have the same name.
    runs = url.replace("sample-views", "run-views")
    assert client.put(f"{runs}/doubtful", json={"query": {"filter": "state:failed"}}).status_code == 200
    assert client.put(f"{url}/doubtful", json={"query": {}}).status_code == 200
    assert [one["query"]["q"] for one in client.get(url).json()] == [None]
    assert client.put(f"{url}/doubtful", json={"query": {"sort": "x"}}).status_code == 422
    assert client.delete(f"{url}/doubtful").status_code == 204
    assert client.delete(f"{url}/doubtful").json()["code"] == "not_found"
    assert [one["name"] for one in client.get(runs).json()] == ["doubtful"]
