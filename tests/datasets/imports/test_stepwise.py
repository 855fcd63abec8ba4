"""Answers by steps with labels: TRL's stepwise supervision, and how PRM800K and Math-Shepherd were published."""

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

Import = Callable[..., ImportReport]

ADD = {"prompt": "Add.", "completions": ["1 + 1 = 2", "2 + 2 = 5"], "labels": [True, False]}
USER = [{"role": "user", "content": "Add."}]
STORED = {**ADD, "prompt": USER}


@pytest.fixture
def samples(sessions: sessionmaker[Session], tmp_path: Path, import_path: Import) -> Callable[..., Any]:
    """(report, samples) of a file with this text, or these rows as JSON lines."""

    def run(content: Any, name: str = "rows.jsonl", **options: Any) -> Any:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else "".join(json.dumps(row) + "\n" for row in content))
        report = import_path(path, **options)
        with sessions() as session:
            return report, [row.sample for row in session.scalars(select(SampleRow).order_by(SampleRow.row))]

    return run


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        ([True, False], [True, False]),
        ([1, 0], [True, False]),
        ([1.0, 0.0], [True, False]),
        ([0.75, 0], [0.75, 0.0]),
        ([True, 0.5], [1.0, 0.5]),
    ],
)
def test_labels_are_booleans_or_where_one_is_a_fraction_numbers(
    given: list[Any], labels: list[Any], samples: Any
) -> None:
    report, stored = samples([{**ADD, "labels": given}])
    assert report.dataset.kind == "stepwise"
    assert [type(label) for label in stored[0]["labels"]] == [type(label) for label in labels]
    assert stored == [{**STORED, "labels": labels}]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({**ADD, "labels": [True]}, "labels: has 1 label for 2 steps"),
        ({**ADD, "completions": ["1 + 1 = 2", " "]}, "completions.1: is empty"),
        ({**ADD, "completions": []}, "completions: has fewer than 1"),
        ({**ADD, "completions": "1 + 1 = 2"}, "completions: is not a list"),
        ({**ADD, "completions": ["1 + 1 = 2", 4]}, "completions.1: is not a text"),
        ({**ADD, "labels": [True, None]}, "labels.1: is neither true nor false, nor a number from 0 to 1"),
        ({**ADD, "labels": [True, -1]}, "labels.1: is neither true nor false, nor a number from 0 to 1"),
        ({**ADD, "labels": None}, "labels: is null"),
        ({**ADD, "prompt": " "}, "prompt.0.content: is empty"),
    ],
)
def test_a_row_with_a_fault_is_refused_by_its_line_and_field(row: dict[str, Any], reason: str, samples: Any) -> None:
    with pytest.raises(RowsRefused) as refused:
        samples([ADD, row])
    (fault,) = refused.value.errors
    assert fault.location == "line 2"
    assert fault.message.startswith(reason)


def test_a_csv_file_has_the_lists_as_json(samples: Any) -> None:
    text = 'prompt,completions,labels\nAdd.,"[""1 + 1 = 2"", ""2 + 2 = 5""]","[true, false]"\n'
    report, stored = samples(text, "rows.csv")
    assert (report.dataset.kind, stored) == ("stepwise", [STORED])


def test_names_of_other_tools_and_a_conversation_are_known(samples: Any) -> None:
    report, stored = samples([{"messages": USER, "steps": ADD["completions"], "step_labels": ADD["labels"], "id": 7}])
    assert (report.dataset.kind, stored) == ("stepwise", [STORED])
    assert [column.name for column in report.unused] == ["id"]


def completion(text: str, rating: int | None) -> dict[str, Any]:
    return {"text": text, "rating": rating, "flagged": False}


def test_prm800k_becomes_a_row_for_every_path_that_was_rated(samples: Any) -> None:
    steps = [
        {"completions": [completion("a", 1)], "human_completion": None, "chosen_completion": 0},
        {
            "completions": [completion("wrong", -1), completion("b", 0), completion("unseen", None)],
            "human_completion": None,
            "chosen_completion": 1,
        },
        {"completions": [completion("bad", -1)], "human_completion": {"text": "c"}, "chosen_completion": None},
    ]
    question = {"problem": "Add.", "ground_truth_answer": "4"}
    record = {"labeler": "x", "question": question, "label": {"steps": steps, "finish_reason": "solution"}}
    report, stored = samples([record])
    assert report.layouts == ["PRM800K"]
    assert [(row["completions"], row["labels"]) for row in stored] == [
        (["a", "wrong"], [True, False]),
        (["a", "b", "bad"], [True, True, False]),
        (["a", "b", "c"], [True, True, True]),
    ]
    assert stored[0]["prompt"] == USER


def test_where_no_completion_was_taken_each_has_the_steps_before_it(samples: Any) -> None:
    steps = [
        {"completions": [completion("a", 1)], "human_completion": None, "chosen_completion": 0},
        {"completions": [completion("bad", -1)], "human_completion": None, "chosen_completion": None},
        {"completions": None, "human_completion": None, "chosen_completion": None},
    ]
    _, stored = samples([{"question": {"problem": "Add."}, "label": {"steps": steps}}])
    assert [(row["completions"], row["labels"]) for row in stored] == [(["a", "bad"], [True, False])]


def test_math_shepherd_is_divided_at_its_tags(samples: Any) -> None:
    given = "Add. Step 1: 1 + 1 = 2 ки\nStep 2: 2 + 2 = 5 ки"
    report, stored = samples(
        [{"input": given, "label": given.replace("ки", "+", 1).replace("ки", "-"), "task": "GSM8K"}]
    )
    assert report.layouts == ["Math-Shepherd"]
    assert stored == [{**STORED, "completions": ["Step 1: 1 + 1 = 2", "Step 2: 2 + 2 = 5"]}]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"input": "Add. Step 1: 2 ки", "label": "Add. Step 1: 3 +"}, "label: is not the text of `input`"),
        ({"input": "Add. 1 + 1 ки", "label": "Add. 1 + 1 +"}, "input: has no `Step 1:`"),
        ({"input": "Add. Step 1: 2 ки more", "label": "Add. Step 1: 2 + more"}, "input: has text behind"),
        ({"input": "Add.", "label": "Add."}, "input: has no step that ends with"),
    ],
)
def test_math_shepherds_faults_are_those_of_a_row(row: dict[str, Any], reason: str, samples: Any) -> None:
    given = {"input": "Add. Step 1: 2 ки", "label": "Add. Step 1: 2 +"}
    with pytest.raises(RowsRefused) as refused:
        samples([given, row])
    assert refused.value.errors[0].message.startswith(reason)
