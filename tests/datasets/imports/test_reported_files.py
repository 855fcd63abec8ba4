"""Files with which users of other tools reported bugs: read as they are, or refused with what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from steerboard.datasets.schemas import ImportReport
from steerboard_contracts.errors import SteerboardError

Import = Callable[..., ImportReport]


@pytest.fixture
def cases(shared: Path) -> Path:
    folder = shared.parent / "cases"
    if not folder.is_dir():
        pytest.skip(f"there are no files of reports in {folder}")
    return folder


@pytest.mark.parametrize(
    ("file", "kind", "unused"),
    [
        ("05-system-column/sharegpt-system-turn.jsonl", "instructions", []),
        ("05-system-column/sharegpt-system-field.jsonl", "instructions", []),
        ("05-system-column/system-and-prompt.jsonl", "preferences", []),
        ("05-system-column/prompt-list-with-system-and-dialogues.jsonl", "preferences", []),
        ("05-system-column/system-and-dialogues.jsonl", "preferences", []),
        ("06-tool-call-null-content/conversation.jsonl", "instructions", []),
        ("06-tool-call-null-content/null.jsonl", "instructions", []),
        ("09-content-parts/parts.jsonl", "instructions", []),
        ("11-kto-labels/kto-messages.jsonl", "unpaired", []),
        ("11-kto-labels/false.csv", "unpaired", []),
        ("11-kto-labels/minus-one.jsonl", "unpaired", []),
        ("11-kto-labels/sft-with-topic-label.jsonl", "instructions", ["label"]),
        ("11-kto-labels/sft-with-class-number.jsonl", "instructions", ["label"]),
        ("31-sharegpt-ranking-dict/kto.jsonl", "unpaired", []),
        ("31-sharegpt-ranking-dict/history.jsonl", "instructions", []),
        ("31-sharegpt-ranking-dict/many-chosen.jsonl", "labelled", []),
        ("31-sharegpt-ranking-dict/pairs.jsonl", "preferences", []),
        ("32-column-oriented-json/two-members.jsonl.gz", "instructions", []),
        ("32-column-oriented-json/wrapped.json", "instructions", []),
        ("32-column-oriented-json/pretty.json", "instructions", []),
        ("32-column-oriented-json/lists.json", "instructions", []),
        ("32-column-oriented-json/pandas-default.json", "instructions", []),
        ("38-label-studio-export/min.json", "preferences", ["annotator", "id"]),
        ("38-label-studio-export/export.json", "preferences", ["task"]),
        ("39-csv-headers/capitals.csv", "preferences", []),
        ("39-csv-headers/excel-sep.csv", "instructions", []),
        ("39-csv-headers/pandas-index.csv", "instructions", ["column 1"]),
    ],
)
def test_a_reported_file_is_read_whole(
    file: str, kind: str, unused: list[str], cases: Path, import_path: Import
) -> None:
    report = import_path(cases / file)
    assert (report.dataset.kind, [column.name for column in report.unused]) == (kind, unused)
    assert (report.rows, report.bad_rows, report.cleaned) == (report.read, 0, {})


@pytest.mark.parametrize(
    ("file", "code", "words"),
    [
        ("05-system-column/system-twice.jsonl", "bad_row", "system text"),
        ("08-reasoning-content/sft.jsonl", "bad_row", "3 of 3 rows cannot be used.*`reasoning_content`"),
        ("08-reasoning-content/pairs.jsonl", "bad_row", "3 of 3 rows cannot be used.*`reasoning_content`"),
        ("08-reasoning-content/weights.jsonl", "bad_row", "3 of 3 rows cannot be used.*`weight`"),
        ("39-csv-headers/twice.csv", "repeated_column", "`response`"),
        ("39-csv-headers/twice.parquet", "repeated_column", "`response`"),
    ],
)
def test_a_reported_file_that_would_lose_something_is_refused(
    file: str, code: str, words: str, cases: Path, import_path: Import
) -> None:
    with pytest.raises(SteerboardError, match=words) as refused:
        import_path(cases / file)
    assert refused.value.code == code
