"""Files of other tools are read as they are, with every answer on its side and every row accounted for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.datasets.errors import RowsRefused
from steerboard.datasets.schemas import ImportReport
from steerboard.datasets.tables import SampleRow
from steerboard_contracts.errors import EmptySelection
from steerboard_files.errors import UnknownColumn

Write = Callable[..., Path]
Import = Callable[..., ImportReport]

HI = {"role": "user", "content": "Hi"}
GOOD, BAD = {"role": "assistant", "content": "Hello"}, {"role": "assistant", "content": "Go away"}
PAIR = {"prompt": [HI], "chosen": "Hello", "rejected": "Go away"}
AB = {"prompt": "Hi", "response_a": "Hello", "response_b": "Go away"}


@pytest.fixture
def samples(sessions: sessionmaker[Session], tmp_path: Path, import_path: Import) -> Callable[..., Any]:
    """(report, samples) of a file with this text."""

    def run(content: Any, name: str = "rows.json", **options: Any) -> Any:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        report = import_path(path, **options)
        with sessions() as session:
            return report, [row.sample for row in session.scalars(select(SampleRow).order_by(SampleRow.row))]

    return run


def annotation(selected: str) -> dict[str, Any]:
    result = {"from_name": "pw", "to_name": "answer1,answer2", "type": "pairwise", "value": {"selected": selected}}
    return {"completed_by": 1, "was_cancelled": False, "result": [result]}


TASK = {"prompt": "Hi", "answer1": "Go away", "answer2": "Hello"}
OTHER_SIDE = {"prompt": "Ho", "answer1": "Hello", "answer2": "Go away"}


@pytest.mark.parametrize(
    ("row", "layout"),
    [
        (
            {"input": {"messages": [HI], "tools": []}, "preferred_output": [GOOD], "non_preferred_output": [BAD]},
            "OpenAI preferences",
        ),
        ({"prompt": "Hi", "chosen": "Hi Hello", "rejected": "Hi Go away"}, "prompt in both sides"),
        ({"input": "Hi", "output_1": "Go away", "output_2": "Hello", "label": 2}, "LLMBar"),
        ({**AB, "winner": "model_a"}, "two answers and a winner"),
        ({**AB, "winner": "[[A]]"}, "two answers and a winner"),
        ({**AB, "winner": 1}, "two answers and a winner"),
        ({**AB, "better": "response_a"}, "two answers and a winner"),
        ({**AB, "winner_model_a": 1, "winner_model_b": 0, "winner_tie": 0}, "two answers and a winner"),
        ({"question": "Hi", "Answer 1": "Go away", "Answer 2": "Hello", "preferred": 2}, "two answers and a winner"),
        ({"input": "Hi", "output_0": "Go away", "output_1": "Hello", "choice": 1}, "two answers and a winner"),
        (
            {"prompt": '["Hi"]', "response_a": '["Go away"]', "response_b": '["Hello"]', "winner": "b"},
            "two answers and a winner",
        ),
        (
            {"conversation_a": [HI, BAD], "conversation_b": [HI, GOOD], "winner": "model_b"},
            "two answers and a winner",
        ),
        ({"id": 1, "data": TASK, "annotations": [annotation("right")]}, "Label Studio"),
        (
            {"fields": TASK, "responses": {"better": [{"value": "answer2", "user_id": "u", "status": "submitted"}]}},
            "Argilla",
        ),
        (
            {
                "fields": TASK,
                "responses": [{"user_id": "u", "status": "submitted", "values": {"better": {"value": 2}}}],
            },
            "Argilla",
        ),
    ],
)
def test_pairs_of_other_tools_become_preferences(row: dict[str, Any], layout: str, samples: Any) -> None:
    report, stored = samples([row])
    assert (report.dataset.kind, stored) == ("preferences", [PAIR])
    assert layout in report.layouts
    assert report.dataset.origin["layouts"] == report.layouts


def test_ties_are_removed_and_counted_also_without_cleaning(samples: Any) -> None:
    winners = ["model_a", "tie", "model_b", "tie (bothbad)", "neither"]
    rows = [{**AB, "prompt": f"Hi {n}", "winner": winner} for n, winner in enumerate(winners)]
    report, stored = samples(rows, clean=False)
    assert (report.read, report.rows, report.cleaned) == (5, 2, {"tie": 3})
    assert [sample["chosen"] for sample in stored] == ["Hello", "Go away"]
    with pytest.raises(EmptySelection, match="1 row removed: neither answer is the better one"):
        samples([{"response_a": "x", "response_b": "y", "prompt": "Hi", "winner_a": 0, "winner_b": 0, "winner_tie": 1}])


def test_what_a_file_tells_of_each_answer_follows_its_side(samples: Any, sessions: sessionmaker[Session]) -> None:
    more = {"model_a": "small", "model_b": "large", "score_a": 1, "score_b": 4, "winner": "b"}
    _, stored = samples([{**AB, **more}])
    assert stored == [{**PAIR, "chosen": "Go away", "rejected": "Hello", "margin": 3.0}]
    with sessions() as session:
        extra = session.scalars(select(SampleRow)).one().extra
    assert extra == {"model_rejected": "small", "model_chosen": "large", "score_rejected": 1, "score_chosen": 4}


def test_how_clear_a_verdict_is_is_not_the_verdict(samples: Any) -> None:
    rows = [{**AB, "preference_strength": strength, "winner": "a"} for strength in (2, 1)]
    assert samples(rows)[1] == [PAIR]


def test_a_winner_that_names_neither_answer_is_refused_with_its_value(samples: Any) -> None:
    rows = [{**AB, "prompt": f"Hi {n}", "winner": "model_a" if n < 1000 else "model_c"} for n in range(1001)]
    with pytest.raises(RowsRefused, match="winner = model_c: is neither response_a nor response_b nor a tie"):
        samples(rows)
    for numbers in ((0, 1), (-2, 2), (-1, 1)):
        with pytest.raises(UnknownColumn, match="response_a"):
            samples([{**AB, "winner": number} for number in numbers])
    with pytest.raises(UnknownColumn, match="preference_strength"):
        samples([{"prompt": "Hi", "response1": "x", "response2": "y", "preference_strength": n} for n in (1, 2)])


def test_columns_that_are_named_by_the_user_stay_as_they_are(samples: Any) -> None:
    report, stored = samples([{**AB, "winner": "b"}], kind="instructions", mapping={"response": "response_a"})
    assert (report.layouts, stored) == ([], [{"prompt": [HI], "response": "Hello"}])


def test_label_studios_short_export_is_read(samples: Any) -> None:
    report, stored = samples([{**TASK, "pw": "right", "annotator": 1}, {**OTHER_SIDE, "pw": "left", "annotator": 1}])
    assert stored == [PAIR, {**PAIR, "prompt": [{"role": "user", "content": "Ho"}]}]
    assert [column.name for column in report.unused] == ["annotator"]


def test_every_annotation_is_a_row_and_tasks_without_one_are_named(samples: Any) -> None:
    cancelled = {**annotation("left"), "was_cancelled": True}
    tasks = [
        {"id": n, "data": {**TASK, "prompt": f"Hi {n}"}, "annotations": [annotation("left")] * n} for n in range(3)
    ]
    tasks.append({"id": 3, "data": TASK, "annotations": [cancelled]})
    report, stored = samples(tasks, bad_rows="skip", clean=False)
    assert (report.rows, report.bad_counts) == (3, {"has no answer of an annotator": 2})
    assert {sample["chosen"] for sample in stored} == {"Go away"}


@pytest.mark.parametrize(
    "document",
    [
        {"prompt": {"0": "Hi", "1": "Ho"}, "response": {"0": "Hello", "1": "No"}},
        {"prompt": ["Hi", "Ho"], "response": ["Hello", "No"]},
        {"data": [{"prompt": "Hi", "response": "Hello"}, {"prompt": "Ho", "response": "No"}]},
        {"columns": ["prompt", "response"], "index": [0, 1], "data": [["Hi", "Hello"], ["Ho", "No"]]},
        {"schema": {"fields": []}, "data": [{"prompt": "Hi", "response": "Hello"}, {"prompt": "Ho", "response": "No"}]},
        {
            "features": [{"name": "prompt"}],
            "rows": [
                {"row_idx": n, "row": row}
                for n, row in enumerate([{"prompt": "Hi", "response": "Hello"}, {"prompt": "Ho", "response": "No"}])
            ],
        },
    ],
)
def test_one_object_with_all_rows_is_read(document: dict[str, Any], samples: Any) -> None:
    _, stored = samples(document)
    assert [(sample["prompt"][0]["content"], sample["response"]) for sample in stored] == [
        ("Hi", "Hello"),
        ("Ho", "No"),
    ]


def test_one_row_below_a_name_is_read(samples: Any) -> None:
    assert samples({"data": [{"prompt": "Hi", "response": "Hello"}]})[1] == [{"prompt": [HI], "response": "Hello"}]


@pytest.mark.parametrize("content", ["sep=;\nprompt;response\nHi;Hello\n", "Prompt,Response\nHi,Hello\n"])
def test_sheets_of_excel_are_read(content: str, samples: Any) -> None:
    assert samples(content, "rows.csv")[1] == [{"prompt": [HI], "response": "Hello"}]


def test_faults_in_such_an_object_are_counted_by_row(samples: Any) -> None:
    with pytest.raises(RowsRefused, match="row 2 response: is not a text"):
        samples({"prompt": ["Hi", "Ho"], "response": ["Hello", 3]})


@pytest.mark.parametrize(
    "row",
    [{"chosen": [HI, GOOD], "rejected": [HI, BAD]}, {"prompt": "Hi", "chosen": ["Hello"], "rejected": ["Go away"]}],
)
def test_one_row_of_lists_is_no_table(row: dict[str, Any], samples: Any) -> None:
    assert not {"table by columns"} & set(samples(row)[0].layouts)


def test_graded_completions_become_labelled_answers_of_one_group(samples: Any) -> None:
    annotations = {"helpfulness": {"Rating": "5"}, "honesty": {"Rating": "N/A"}}
    completions = [
        {"model": "a", "response": "Hello", "overall_score": 8.0, "annotations": annotations},
        {"model": "b", "response": "Go away", "overall_score": 2.0, "annotations": {}},
    ]
    report, stored = samples([{"instruction": "Hi", "source": "flan", "completions": completions}])
    assert report.dataset.kind == "labelled"
    place = [{"group": 0, "candidate": n} for n in range(2)]
    assert stored == [
        {"prompt": [HI], "response": "Hello", "source": "flan", **place[0], "attributes": {"helpfulness": 5.0}},
        {"prompt": [HI], "response": "Go away", "source": "flan", **place[1]},
    ]
    assert report.dataset.rewards.high == 8.0


def test_lists_of_answers_and_grades_are_labelled_answers(samples: Any) -> None:
    report, stored = samples([{"query": "Hi", "responses": ["Hello", "Go away"], "scores": [1, 0.5]}])
    assert (report.dataset.kind, [row["response"] for row in stored]) == ("labelled", ["Hello", "Go away"])
    with pytest.raises(RowsRefused, match="other numbers of responses and scores"):
        samples([{"query": "Hi", "responses": ["Hello"], "scores": [1, 2]}])


def test_earlier_turns_in_a_history_open_the_prompt(samples: Any) -> None:
    row = {
        "instruction": "And now?",
        "input": "",
        "output": "Lima.",
        "history": [["Hi", "Hello"]],
        "system": "Be brief.",
    }
    report, stored = samples([row, {**row, "instruction": "Ho", "history": []}])
    assert stored[0]["prompt"] == [
        {"role": "system", "content": "Be brief."},
        HI,
        GOOD,
        {"role": "user", "content": "And now?"},
    ]
    assert stored[1]["prompt"][1:] == [{"role": "user", "content": "Ho"}]
    assert report.unused == []


def test_answers_of_several_turns_are_removed_since_later_prompts_differ(samples: Any) -> None:
    turns = {"prompt": '["Hi", "Ho"]', "response_a": '["a", "b"]', "response_b": '["c", "d"]', "winner": "a"}
    report, stored = samples([turns, {**AB, "winner": "a"}])
    assert (stored, report.cleaned) == ([PAIR], {"diverging": 1})


@pytest.mark.parametrize(
    ("row", "hint"),
    [
        ({"chosen": "The sky is blue.", "rejected": "The sky is green."}, "a column `prompt`"),
        ({"text": "The sky is blue."}, "--kind prompts --map prompt=text"),
        ({"prompt": "Hi", "responses": ["a", "b"]}, "a list `scores`"),
        ({"message_id": "m", "parent_id": None, "text": "Hi", "role": "prompter"}, "OpenAssistant"),
        ({"question_id": 1, "choices": [{"turns": ["a"]}]}, "evaluations import-answers"),
    ],
)
def test_what_is_not_read_is_recognised_with_what_to_do(row: dict[str, Any], hint: str, samples: Any) -> None:
    with pytest.raises(UnknownColumn) as refused:
        samples([row])
    assert hint in (refused.value.hint or "")
