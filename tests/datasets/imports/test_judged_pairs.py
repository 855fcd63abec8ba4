"""Two answers that people voted on, scored or ranked become preferences, with a margin where the file has one; ties are
counted."""

from __future__ import annotations

import json
from collections import Counter
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

Import = Callable[..., ImportReport]

HI = {"role": "user", "content": "Hi"}
PAIR = {"prompt": [HI], "chosen": "Hello", "rejected": "Go away"}
PANDALM = {"idx": 0, "instruction": "Hi", "input": "", "response1": "Go away", "response2": "Hello"}
WEBGPT = {"question": {"full_text": "Hi", "id": "q"}, "answer_0": "Go away", "answer_1": "Hello"}
SHP = {"history": "Hi", "human_ref_A": "Hello", "human_ref_B": "Go away", "score_A": 30, "score_B": 10}
HELPSTEER = {"context": [HI], "response1": "Hello", "response2": "Go away"}


def message(text: str, replies: tuple[Any, ...] = (), **more: Any) -> dict[str, Any]:
    role = "prompter" if text.startswith("H") and "rank" not in more else "assistant"
    return {"message_id": text, "text": text, "role": role, "replies": list(replies), **more}


@pytest.fixture
def stored(sessions: sessionmaker[Session], tmp_path: Path, import_path: Import) -> Callable[..., Any]:
    """(report, rows) of a file with these."""

    def run(rows: Any, **options: Any) -> Any:
        path = tmp_path / "rows.json"
        path.write_text(json.dumps(rows))
        report = import_path(path, **options)
        with sessions() as session:
            return report, list(session.scalars(select(SampleRow).order_by(SampleRow.row)))

    return run


@pytest.mark.parametrize(
    ("row", "layout", "margin"),
    [
        ({**PANDALM, "annotator1": 2, "annotator2": 2, "annotator3": 1}, "votes of annotators", 1.0),
        ({**PANDALM, "annotator1": 2, "annotator2": 2, "annotator3": 0}, "votes of annotators", 2.0),
        ({**WEBGPT, "score_0": -0.5, "score_1": 0.5}, "two answers and scores", 1.0),
        ({"prompt": "Hi", "Output A": "Hello", "Output B": "Go away", "Rating A": 4, "Rating B": "1"}, None, 3.0),
        ({**SHP, "labels": 1, "score_ratio": 3.0}, "SHP", 3.0),
        ({**SHP, "human_ref_B": "Hello", "human_ref_A": "Go away", "labels": 0, "score_ratio": 2.5}, "SHP", 2.5),
        ({**HELPSTEER, "overall_preference": -2, "individual_preference": [{"score": -2}]}, "HelpSteer", 2.0),
        (
            {**HELPSTEER, "response1": "Go away", "response2": "Hello", "overall_preference": 1}
            | {"individual_preference": [{"score": 1}]},
            "HelpSteer",
            1.0,
        ),
        ({"prompt": "Hi", "response_1": "Hello", "response_2": "Go away", "preference_strength": -3}, "HelpSteer", 3.0),
    ],
)
def test_the_better_answer_is_chosen_and_the_margin_kept(
    row: dict[str, Any], layout: str | None, margin: float, stored: Any
) -> None:
    report, rows = stored([row])
    assert [row.sample for row in rows] == [{**PAIR, "margin": margin}]
    assert report.layouts == [layout or "two answers and scores"]


@pytest.mark.parametrize(
    ("tie", "pair"),
    [
        (
            {**PANDALM, "annotator1": 2, "annotator2": 1, "annotator3": 0},
            {**PANDALM, "annotator1": 2, "annotator2": 2, "annotator3": 2},
        ),
        ({**WEBGPT, "score_0": 0, "score_1": 0.0}, {**WEBGPT, "score_0": 0, "score_1": 1}),
        ({**HELPSTEER, "overall_preference": 0}, {**HELPSTEER, "overall_preference": -1}),
    ],
)
def test_ties_are_counted(tie: dict[str, Any], pair: dict[str, Any], stored: Any) -> None:
    report, rows = stored([tie, pair])
    assert (report.read, len(rows), report.cleaned) == (2, 1, {"tie": 1})


@pytest.mark.parametrize(
    ("good", "bad", "fault"),
    [
        ({**PANDALM, "annotator1": 2}, {**PANDALM, "annotator1": 3}, "annotator1 = 3: are not votes of 1, 2, or 0"),
        (
            {**WEBGPT, "score_0": 0, "score_1": 1},
            {**WEBGPT, "score_0": None, "score_1": 1},
            "score_0 = None, score_1 = 1: are not two scores",
        ),
        ({**SHP, "labels": 1}, {**SHP, "labels": 2}, "labels = 2: is not 0 or 1"),
        (
            {**HELPSTEER, "overall_preference": -1},
            {**HELPSTEER, "overall_preference": "much better"},
            "overall_preference = much better: is not a number",
        ),
    ],
)
def test_a_row_without_a_verdict_is_refused_with_its_values(
    good: dict[str, Any], bad: dict[str, Any], fault: str, stored: Any
) -> None:
    with pytest.raises(RowsRefused, match=fault):
        stored([good] * 1000 + [bad])


def test_the_margin_of_votes_serves_as_a_threshold(stored: Any) -> None:
    votes = [{"annotator1": 1, "annotator2": 1, "annotator3": last} for last in (1, 2)]
    rows = [{**PANDALM, "instruction": f"Hi {n}", **given} for n, given in enumerate(votes)]
    report, kept = stored(rows, min_margin=2.0)
    assert ([row.sample["margin"] for row in kept], report.cleaned) == ([3.0], {"small_margin": 1})


def test_every_two_ranked_replies_of_a_tree_become_a_preference(stored: Any) -> None:
    later = message("How?", (message("Well", rank=0), message("Badly", rank=1), message("Never", rank=1)))
    replies = (message("Go away", rank=1), message("Hello", (later,), rank=0), message("Gone", deleted=True, rank=2))
    trees = [
        {"message_tree_id": "t", "prompt": message("Hi", replies)},
        {"message_tree_id": "u", "prompt": message("Ho")},
    ]
    report, rows = stored(trees)
    answered = [HI, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "How?"}]
    assert [row.sample for row in rows] == [
        PAIR,
        {"prompt": answered, "chosen": "Well", "rejected": "Badly"},
        {"prompt": answered, "chosen": "Well", "rejected": "Never"},
    ]
    assert rows[0].extra == {"message_tree_id": "t", "rank_chosen": 0, "rank_rejected": 1}
    assert (report.layouts, report.cleaned) == (["OpenAssistant"], {"tie": 1, "unranked": 1})


def test_a_message_with_very_many_ranked_replies_is_refused(stored: Any) -> None:
    replies = tuple(message(f"No {n}", rank=n) for n in range(21))
    with pytest.raises(RowsRefused, match="more than 20 ranked replies"):
        stored([{"message_tree_id": "t", "prompt": message("Hi", replies)}])


def test_trees_without_any_ranks_are_recognised(stored: Any) -> None:
    with pytest.raises(UnknownColumn) as refused:
        stored([{"message_tree_id": "t", "prompt": message("Hi", (message("Go away"), message("No")))}])
    assert "OpenAssistant's messages without ranks" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("row", "hint"),
    [
        (PANDALM, "steerboard evaluations import-answers"),
        (
            {"idx": 0, "pandalm_result": 2, "pandalm_reason": "It is shorter."},
            "steerboard figures TESTSET THIS_FILE --format pandalm",
        ),
    ],
)
def test_two_answers_without_a_verdict_are_recognised(row: dict[str, Any], hint: str, stored: Any) -> None:
    with pytest.raises(UnknownColumn) as refused:
        stored([row])
    assert hint in (refused.value.hint or "")
    if "instruction" in row:
        assert stored([row], kind="prompts")[0].dataset.kind == "prompts"


def test_only_ties_leave_no_preference(stored: Any) -> None:
    with pytest.raises(EmptySelection, match="1 row removed: neither answer is the better one"):
        stored([{**WEBGPT, "score_0": 1, "score_1": 1}])


def test_the_test_set_of_pandalm_is_read_by_the_majority_of_its_annotators(shared: Path, import_path: Import) -> None:
    path = shared / "pandalm" / "testset-v1.json"
    if not path.exists():
        pytest.skip("PandaLM's test set is not here")
    votes = [[row[f"annotator{n}"] for n in (1, 2, 3)] for row in json.loads(path.read_text())]
    ties = sum((common := Counter(given).most_common(2))[0][0] == 0 or common[0][1] == 1 for given in votes)
    report = import_path(path, bad_rows="skip")
    assert (report.read, report.cleaned["tie"]) == (len(votes), ties)
    # Six answers of the set are numbers in place of texts.
    assert (report.bad_counts, report.rows) == (
        {"chosen: is not a text": 6},
        len(votes) - 6 - sum(report.cleaned.values()),
    )
