"""Answers that call tools, wherever a dataset's answers are read: search, figures, cleaning, review, conversions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cleaning_world import Cleaning
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.search import indexing
from steerboard.platform.database import transaction

BASE = "/api/v1/projects/default/datasets"
USER = {"role": "user", "content": "The weather?"}


def calling(city: str, text: str = "", **more: Any) -> dict[str, Any]:
    call = {
        "type": "function",
        "function": {"name": "look_up", "arguments": json.dumps({"city": city}, ensure_ascii=False)},
    }
    return {"role": "assistant", "content": text, "tool_calls": [{**more, **call}]}


@pytest.fixture
def answers(
    client: TestClient,
    sessions: sessionmaker[Session],
    project: Project,
    write_jsonl: Callable[..., Path],
    import_path: Callable[..., Any],
) -> TestClient:
    """Instructions: a call, a text and a call, a text that is spelled as that call."""
    with transaction(sessions) as session:
        session.get_one(Project, project.id).held_out_fraction = project.held_out_fraction = 1e-9
    rows = [
        {"prompt": [USER], "response": calling("Zürich")},
        {"prompt": [USER], "response": calling("Bern", "I look it up.")},
        {"prompt": [USER], "response": 'look_up {"city": "Zürich"}'},
    ]
    import_path(write_jsonl(rows), "answers", kind="instructions")
    return client


def send(client: TestClient, method: str, path: str, status: int = 200, body: Any = None) -> Any:
    answer = client.request(method, f"{BASE}/{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def found(client: TestClient, query: str, **more: Any) -> list[int]:
    items = client.get(f"{BASE}/answers/samples", params={"q": query, **more}).json()["items"]
    return [item["row"] for item in items]


@pytest.mark.parametrize("indexed", [False, True])
def test_names_arguments_and_texts_are_found_and_the_words_of_the_form_are_not(
    answers: TestClient, sessions: sessionmaker[Session], indexed: bool
) -> None:
    if indexed:
        with transaction(sessions) as session:
            while indexing.index_next(session, set()):
                pass
    assert found(answers, "zürich") == [0, 2]
    assert found(answers, '"look it up"') == [1]
    assert found(answers, '"up city bern"') == [1]
    assert found(answers, "ook_up", match="part") == [0, 1, 2]
    assert found(answers, "function") == found(answers, "assistant") == found(answers, "tool_calls") == []


def test_the_place_of_a_hit_in_a_call_is_shown(answers: TestClient) -> None:
    params: dict[str, Any] = {"q": "bern", "excerpt": 100}
    (item,) = answers.get(f"{BASE}/answers/samples", params=params).json()["items"]
    (excerpt,) = item["excerpts"]
    assert excerpt["field"] == "response"
    assert [part["text"] for part in excerpt["parts"] if part["hit"]] == ["Bern"]
    assert "".join(part["text"] for part in excerpt["parts"]).endswith('I look it up.\nlook_up {"city": "Bern"}')


def test_lengths_count_the_calls(answers: TestClient) -> None:
    (lengths,) = [f for f in send(answers, "GET", "answers/statistics")["lengths"] if f["field"] == "response"]
    spelled = len('look_up {"city": "Zürich"}')
    assert lengths["max"] == len('I look it up.\nlook_up {"city": "Bern"}')
    assert lengths["p50"] == spelled
    assert send(answers, "GET", "answers")["response_characters"]["p50"] == spelled


def test_a_row_keeps_its_calls_when_its_text_is_edited(answers: TestClient) -> None:
    (stored, *_) = answers.get(f"{BASE}/answers/samples").json()["items"]
    edited = {**stored["sample"], "response": {**stored["sample"]["response"], "content": "A moment."}}
    kept = send(answers, "PUT", "answers/review/rows/0/change", 200, {"action": "edit", "sample": edited})
    assert kept["sample"]["response"] == calling("Zürich", "A moment.")
    made = send(answers, "POST", "answers/review/version", 201, {"name": "second"})
    assert made["rows"] == 3
    (again, *_) = answers.get(f"{BASE}/second/samples").json()["items"]
    assert again["sample"]["response"] == calling("Zürich", "A moment.")
    compared = send(answers, "GET", "second/difference?before=answers")
    assert (compared["changed"], compared["same"]) == (1, 2)


@pytest.mark.parametrize(
    ("calls", "place", "message"),
    [
        ([{"function": {"name": "f", "arguments": "{"}}], "response.tool_calls.0.function.arguments", "is not JSON"),
        ([{"function": {"arguments": "{}"}}], "response.tool_calls.0.function.name", "is missing"),
    ],
)
def test_an_edit_that_breaks_a_call_is_refused_at_its_place(
    answers: TestClient, calls: Any, place: str, message: str
) -> None:
    sample = {"prompt": [USER], "response": {"role": "assistant", "content": "", "tool_calls": calls}}
    refused = send(answers, "PUT", "answers/review/rows/0/change", 422, {"action": "edit", "sample": sample})
    assert refused["errors"] == [{"location": place, "message": message}]


def test_an_edit_to_a_message_without_calls_is_its_text(answers: TestClient) -> None:
    sample = {"prompt": [USER], "response": {"role": "assistant", "content": "Sunny.", "tool_calls": []}}
    kept = send(answers, "PUT", "answers/review/rows/0/change", 200, {"action": "edit", "sample": sample})
    assert kept["sample"]["response"] == "Sunny."


LONG = " ".join(f"word{n}" for n in range(200))
PAIRS: list[dict[str, Any]] = [
    {"prompt": [USER], "chosen": calling("Bern"), "rejected": "Sunny.", "id": "a"},
    {"prompt": [USER], "chosen": calling("Bern", id="c1"), "rejected": "Sunny. ", "id": "repeats a"},
    {"prompt": [USER], "chosen": calling("Bern"), "rejected": calling("Bern", " "), "id": "same sides"},
    {"prompt": [USER], "chosen": calling("Bern"), "rejected": calling("Bonn"), "id": "b"},
    {"prompt": [USER], "chosen": calling("Bonn"), "rejected": calling("Bern"), "id": "contradicts b"},
    {"prompt": [USER], "chosen": calling("Bonn"), "rejected": 'look_up {"city": "Bonn"}', "id": "spelled"},
    {"prompt": "Who?", "chosen": calling(LONG), "rejected": "No.", "id": "c"},
    {"prompt": "Who?", "chosen": calling(LONG.replace("word40", "other")), "rejected": "No.", "id": "nearly c"},
]


def test_pairs_are_cleaned_by_their_texts_and_calls(
    client: TestClient, sessions: sessionmaker[Session], tmp_path: Path
) -> None:
    cleaning = Cleaning(client, sessions, tmp_path)
    cleaning.dataset(PAIRS)
    shown = cleaning.preview()
    assert {each["rule"]: each["rows"] for each in shown["rules"] if each["rows"]} == {
        "identical_sides": 1,
        "contradiction": 2,
        "duplicate": 1,
        "near_duplicate": 1,
    }
    made = cleaning.clean()
    assert cleaning.ids(made["name"]) == ["a", "spelled", "c"]


def test_conversions_take_calls_with_them_and_a_judge_reads_them(
    client: TestClient, sessions: sessionmaker[Session], tmp_path: Path
) -> None:
    cleaning = Cleaning(client, sessions, tmp_path)
    cleaning.dataset(PAIRS[3:4])

    def convert(conversion: str) -> list[Any]:
        made = send(client, "POST", "pairs/conversions", 201, {"conversion": conversion, "name": conversion})
        assert made["rows"]
        return [item["sample"] for item in client.get(f"{BASE}/{conversion}/samples").json()["items"]]

    assert [row["response"] for row in convert("chosen_responses")] == [calling("Bern")]
    thumbs = convert("thumbs_from_pairs")
    assert [(row["response"], row["desirable"]) for row in thumbs] == [
        (calling("Bern"), True),
        (calling("Bonn"), False),
    ]
    asked = convert("verdict_prompts")[0]["prompt"][-1]["content"]
    assert 'look_up {"city": "Bern"}' in asked
    assert 'look_up {"city": "Bonn"}' in asked
    send(client, "PUT", "pairs/review/rows/0/change", 200, {"action": "flip"})
    send(client, "POST", "pairs/review/version", 201, {"name": "flipped"})
    (flipped,) = client.get(f"{BASE}/flipped/samples").json()["items"]
    assert (flipped["sample"]["chosen"], flipped["sample"]["rejected"]) == (calling("Bonn"), calling("Bern"))


def test_rows_with_calls_are_collected(client: TestClient) -> None:
    collections = BASE.replace("datasets", "collections")
    assert client.post(collections, json={"name": "good", "kind": "instructions"}).status_code == 201
    added = client.post(f"{collections}/good/rows", json={"sample": {"prompt": "Hi", "response": calling("Bern")}})
    assert added.status_code == 201, added.text
    assert client.post(f"{collections}/good/dataset").status_code == 201
    (item,) = client.get(f"{BASE}/good-v1/samples").json()["items"]
    assert item["sample"]["response"] == calling("Bern")
