"""Grades of an answer by name: from columns of a file, as a policy of several attributes learns from them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.datasets.errors import RowsRefused
from steerboard.datasets.parsing.mapping import plan_mapping
from steerboard.datasets.parsing.row_builder import Shaped, Shaper
from steerboard.datasets.parsing.unused_columns import unused_columns
from steerboard.datasets.tables import SampleRow
from steerboard_contracts.errors import BadRow
from steerboard_contracts.samples import validate_sample
from steerboard_files.errors import UnknownColumn

Write = Callable[..., Path]
Import = Callable[..., Any]
ROW = {"prompt": "Hi", "response": "Hello", "reward": 3}
EACH = {"attributes.helpfulness": "helpful", "attributes.verbosity": "words"}


def grades(row: dict[str, Any], given: dict[str, str] | None = None, csv: bool = False) -> dict[str, float] | None:
    mapping = plan_mapping("labelled", list(row), [row], given or {})
    result = Shaper(mapping, texts_only=csv)(row)
    assert isinstance(result, Shaped), result
    attributes: dict[str, float] | None = validate_sample("labelled", result.sample, 1).model_dump()["attributes"]
    return attributes


@pytest.mark.parametrize(
    ("row", "given", "csv", "kept"),
    [
        ({"helpful": 4, "words": 2.5}, EACH, False, {"helpfulness": 4.0, "verbosity": 2.5}),
        ({"helpful": "4", "words": ""}, EACH, True, {"helpfulness": 4.0}),
        ({"helpful": None, "words": None}, EACH, False, None),
        ({"attributes": {"b": 1, "a": None, "c": -0.0}}, None, False, {"b": 1.0, "c": 0.0}),
        ({"attributes": '{"b": 1}'}, None, True, {"b": 1.0}),
        ({"attributes": {"wit": 1}, "words": 2}, {"attributes.verbosity": "words"}, False, {"verbosity": 2, "wit": 1}),
        ({"attributes": {"wit": 1}, "words": 2}, {"attributes": "attributes"}, False, {"wit": 1.0}),
        ({"marks": {"wit": 1}}, {"attributes": "marks"}, False, {"wit": 1.0}),
    ],
)
def test_what_is_missing_is_left_out(
    row: dict[str, Any], given: dict[str, str] | None, csv: bool, kept: dict[str, float] | None
) -> None:
    assert grades({**ROW, **row}, given, csv) == kept


def test_one_column_may_be_the_reward_and_an_attribute() -> None:
    assert grades(ROW, {"attributes.helpfulness": "reward"}) == {"helpfulness": 3.0}


def test_a_column_of_that_name_which_holds_something_else_is_kept_as_it_is() -> None:
    row = {**ROW, "attributes": "long, kind"}
    mapping = plan_mapping("labelled", list(row), [row], {})
    shaped = Shaper(mapping, texts_only=False)(row)
    assert isinstance(shaped, Shaped)
    assert shaped.extra == {"attributes": "long, kind"}


@pytest.mark.parametrize(
    ("attributes", "fault"),
    [
        ({"helpfulness": "high"}, "attributes.helpfulness: is not a number"),
        ({"helpfulness": True}, "attributes.helpfulness: is not a number"),
        ({"helpfulness": float("nan")}, "attributes.helpfulness: is not a finite number"),
        ({"a b": 1}, "does not match"),
        ({"rm_score": 1}, "attributes: `rm_score` is the reward of the row"),
        ({f"a{i}": 1 for i in range(33)}, "attributes: has more than 32 attributes"),
    ],
)
def test_a_grade_that_is_none_is_named(attributes: dict[str, Any], fault: str) -> None:
    with pytest.raises(BadRow) as refused:
        validate_sample("labelled", {**ROW, "attributes": attributes}, 7)
    assert fault in refused.value.detail
    assert "line 7" in refused.value.detail


def test_other_kinds_have_none() -> None:
    with pytest.raises(UnknownColumn, match=r"instructions have no field 'attributes.wit'"):
        plan_mapping("instructions", ["prompt", "response", "wit"], [], {"attributes.wit": "wit"})
    with pytest.raises(UnknownColumn) as refused:
        plan_mapping("labelled", [*ROW, "wit"], [], {"attribute.wit": "wit"})
    assert "attributes.NAME=COLUMN" in str(refused.value.hint)


def test_numbers_that_would_not_be_used_are_offered_as_attributes() -> None:
    row = {**ROW, "verbosity": 2, "question_id": 81, "model": "m"}
    mapping = plan_mapping("labelled", list(row), [row], {})
    unused = unused_columns("labelled", list(row), [row], mapping.read, frozenset())
    assert [(column.name, column.field) for column in unused] == [
        *(("verbosity", "attributes.verbosity"), ("question_id", None), ("model", None)),
    ]
    assert unused[0].words.endswith("--kind labelled --map attributes.verbosity=verbosity")


def test_an_imported_file_keeps_them_with_its_rows(
    sessions: sessionmaker[Session], write_jsonl: Write, import_path: Import
) -> None:
    given = {"attributes.verbosity": "words", "attributes.tone": "tone"}
    rows = [{**ROW, "prompt": f"Hi {i}", "reward": i, "words": i, "tone": None if i % 2 else 1} for i in range(4)]
    report = import_path(write_jsonl(rows), kind="labelled", mapping=given)
    assert report.columns.items() >= given.items()
    with sessions() as session:
        stored = session.scalars(select(SampleRow).order_by(SampleRow.row)).all()
    assert [row.sample.get("attributes") for row in stored] == [
        {"tone": 1.0, "verbosity": 0.0},
        {"verbosity": 1.0},
        {"tone": 1.0, "verbosity": 2.0},
        {"verbosity": 3.0},
    ]
    assert {row.extra for row in stored} == {None}
    with pytest.raises(RowsRefused, match="row"):
        import_path(write_jsonl([{**ROW, "words": "many", "tone": 1}]), "bad", kind="labelled", mapping=given)
