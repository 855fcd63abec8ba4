"""Rows of a file: lines and arrays, bounded, with the line of everything that is wrong; what kind of file it is."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from steerboard_figures.formats import rows as rows_module
from steerboard_figures.formats.detection import ANSWERS, JUDGMENTS, QUESTIONS, detect, read
from steerboard_figures.formats.records import Unreadable, moment, number
from steerboard_figures.formats.rows import read_rows
from steerboard_files.errors import BrokenFile, EmptyFile, FileTooLarge, WrongFileType
from steerboard_files.records import Limits, Problem, Source


def source(content: bytes, label: str = "rows.jsonl") -> Source:
    file = io.BytesIO(content)
    return Source(label, lambda: file)


def seen(content: bytes) -> list[Any]:
    return [(line, row.code if isinstance(row, Problem) else row) for line, row in read_rows(source(content))]


def test_lines_and_arrays_give_the_same_rows_plain_and_gzipped() -> None:
    objects = [{"a": 1}, {"b": "x]y,["}, {"c": [1, {"d": '\\"'}]}]
    lines = b"".join(json.dumps(document).encode() + b"\n" for document in objects)
    array = json.dumps(objects).encode()
    pretty = json.dumps(objects, indent=2).encode()
    for content in (lines, array, pretty, b"\xef\xbb\xbf" + array, b"\n  " + array):
        for packed in (content, gzip.compress(content)):
            assert [row for _, row in seen(packed)] == objects


def test_an_element_has_the_line_on_which_it_begins() -> None:
    assert [line for line, _ in seen(b'[\n {"a":\n 1},\n\n {"b": 2}]')] == [2, 5]


def test_a_file_can_be_read_twice() -> None:
    zipped = source(gzip.compress(b'[{"a": 1}]'))
    assert list(read_rows(zipped)) == list(read_rows(zipped)) == [(1, {"a": 1})]


def test_bad_rows_are_named_and_do_not_end_the_file() -> None:
    assert seen(b'{"a": 1}\nno\n[1]\n{"b": 2}\n') == [(1, {"a": 1}), (2, "broken_json"), (3, "bad_row"), (4, {"b": 2})]
    assert seen(b'[{"a": 1},\n7,\n{"b": 2}]') == [(1, {"a": 1}), (2, "bad_row"), (3, {"b": 2})]
    assert seen(b'[{"a": 1}, {"b": "\xff"}]') == [(1, {"a": 1}), (1, "invalid_encoding")]


@pytest.mark.parametrize(
    ("content", "error", "line"),
    [
        (b'[{"a": 1},\n{"b": ', BrokenFile, "line 2"),
        (b'[{"a": 1}\n{"b": 2}]', BrokenFile, "line 2"),
        (b'[{"a": 1}', BrokenFile, "line 1"),
        (b"[" * 100_000, BrokenFile, "ends too early"),
        (gzip.compress(b'[{"a": 1}]', mtime=0)[:-6], BrokenFile, "gzip"),
        (b"", EmptyFile, "empty"),
        (b" \n\n", EmptyFile, "empty"),
        (b"[]", EmptyFile, "no rows"),
        (b"PK\x03\x04zip", WrongFileType, "no JSON"),
        (b'{\n"a": 1\n}', WrongFileType, "several lines"),
    ],
)
def test_files_that_cannot_be_read_say_where(content: bytes, error: type[Exception], line: str) -> None:
    with pytest.raises(error, match=line):
        list(read_rows(source(content)))


def test_files_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "MOST_ROWS", 2)
    with pytest.raises(FileTooLarge, match="2 rows"):
        list(read_rows(source(b"{}\n{}\n{}\n")))
    monkeypatch.setattr(rows_module, "_LIMITS", Limits(unpacked=100))
    with pytest.raises(FileTooLarge, match="100 bytes"):
        list(read_rows(source(gzip.compress(b"[" + b"{}," * 100 + b"{}]"))))


@pytest.mark.parametrize(
    ("path", "kind", "format", "rows"),
    [
        ("fastchat/mt_bench/question.jsonl", "questions", "fastchat", 80),
        ("fastchat/vicuna_bench/question.jsonl", "questions", "fastchat", 80),
        ("vicuna_blog/question.jsonl", "questions", "fastchat", 80),
        ("arena_hard/arena-hard-v0.1/question.jsonl", "questions", "arena_hard", 500),
        ("arena_hard/arena-hard-v2.0/question.jsonl", "questions", "arena_hard", 750),
        ("fastchat/mt_bench/model_answer/gpt-4.jsonl", "answers", "fastchat", 80),
        ("fastchat/mt_bench/reference_answer/gpt-4.jsonl", "answers", "fastchat", 30),
        ("vicuna_blog/answer/answer_bard.jsonl", "answers", "fastchat", 80),
        ("arena_hard/arena-hard-v0.1/model_answer/gpt-4-0314.jsonl", "answers", "arena_hard", 500),
        ("fastchat/mt_bench_single_phi3dpo.jsonl", "judgments", "fastchat_single", 160),
        ("fastchat/mt_bench_single_llama3_with_errors.jsonl", "judgments", "fastchat_single", 330),
        ("arena_hard/arena-bench-v1_single/claude-2.1.jsonl.gz", "judgments", "arena_bench", 300),
        ("vicuna_blog/review/others/review_llama_alpaca-13b.jsonl", "judgments", "vicuna_review", 80),
    ],
)
def test_published_files_are_recognised_and_every_row_is_read(
    published: Path, path: str, kind: str, format: str, rows: int
) -> None:
    file = Source(path, lambda: (published / path).open("rb"))
    assert detect(file) == (kind, format)
    parsers: dict[str, dict[str, Any]] = {"questions": QUESTIONS, "answers": ANSWERS, "judgments": JUDGMENTS}
    rows_read = list(read(file, parsers[kind][format]))
    assert len(rows_read) == rows
    assert [row for _, row in rows_read if isinstance(row, Problem)] == []


@pytest.mark.parametrize(
    ("row", "kind", "format"),
    [
        ({"instruction": "i", "dataset": "d"}, "questions", "alpaca_eval"),
        ({"instruction": "i", "output": "o", "generator": "g"}, "answers", "alpaca_eval"),
        (
            {"instruction": "i", "generator_1": "b", "generator_2": "g", "preference": None},
            "judgments",
            "alpaca_eval",
        ),
        ({"question_id": 1, "model_1": "a", "model_2": "b", "g1_winner": "tie"}, "judgments", "fastchat_pair"),
        ({"question_id": "x", "model": "m", "games": [None, None]}, "judgments", "arena_hard"),
        ({"question_id": "x", "category": "c", "turns": [{"content": "q"}]}, "questions", "arena_hard"),
        ({"question_id": "x", "model_id": "m", "choices": [{"turns": [{"content": "q"}]}]}, "answers", "arena_hard"),
        ({"prompt": "hello"}, "questions", "jsonl"),
        ({"category": "math", "prompt": ["a", "b"], "reference": []}, "questions", "fastchat"),
    ],
)
def test_other_shapes_are_recognised(row: dict[str, Any], kind: str, format: str) -> None:
    assert detect(source(json.dumps(row).encode())) == (kind, format)


def test_a_file_of_no_known_format_names_its_fields() -> None:
    with pytest.raises(WrongFileType, match="colour, size"):
        detect(source(b'{"size": 1, "colour": "red"}'))


@pytest.mark.parametrize(
    ("written", "value"),
    [("7.5", 7.5), (" -1 ", -1.0), ("1e3", 1000.0), (".5", 0.5), ("", None), ("NaN", None), ("null", None), (2, 2.0)],
)
def test_a_number_may_be_written_as_a_text(written: object, value: float | None) -> None:
    assert number({"score": written}, "score") == value


@pytest.mark.parametrize("written", ["five", "1_000", "inf", "0x10", "٣", "1" * 60, True, [1], float("inf")])
def test_what_is_no_number_is_refused_with_its_field(written: object) -> None:
    with pytest.raises(Unreadable, match="in `score`, not a number"):
        number({"score": written}, "score")


@pytest.mark.parametrize(
    ("written", "at"),
    [
        (1700000000.5, 1700000000.5),
        ("1700000000.5", 1700000000.5),
        (1700000000500, 1700000000.5),
        ("2023-11-14T22:13:20.5Z", 1700000000.5),
        ("2023-11-14 22:13:20.5", 1700000000.5),
        ("yesterday", None),
        (-5, None),
        (True, None),
        ([], None),
    ],
)
def test_a_time_that_nobody_understands_is_none_and_does_not_spoil_its_row(written: object, at: float | None) -> None:
    assert moment({"tstamp": written}) == at


def test_fields_of_another_shape_are_bad_rows() -> None:
    rows = [{"uid": "1", "turns": 5}, {"uid": "1", "turns": {}}]
    content = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    bad = [row for _, row in read(source(content), QUESTIONS["arena_hard"])]
    assert [row.reason for row in bad if isinstance(row, Problem)] == ["has no list in `turns`"] * 2
    assert detect(source(b'{"choices": 5, "model_id": "m"}')) == ("answers", "fastchat")
