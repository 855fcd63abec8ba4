"""One list of formats and layouts serves readers, names, the page, the command line and the documentation."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from steerboard.cli.data import datasets
from steerboard.cli.main import app as command_line
from steerboard.datasets.parsing.unread_layouts import UNREAD
from steerboard_files.detect import open_reader
from steerboard_files.errors import WrongFileType
from steerboard_files.known import FORMATS, IN_WORDS, without_ending
from steerboard_files.records import Source

DOCS = (Path(__file__).parents[3] / "docs" / "importing.md").read_text()


def test_the_page_gets_every_format_and_layout(client: TestClient) -> None:
    readable = client.get("/api/v1/projects/default/imports/formats").json()
    assert [format_["name"] for format_ in readable["formats"]] == [format_.name for format_ in FORMATS]
    assert {ending for format_ in readable["formats"] for ending in format_["endings"]} | {".gz"} == set(
        readable["endings"]
    )
    for row in [
        f"| `{format_['name']}` | {', '.join(format_['endings'])} | {format_['about']}"
        for format_ in readable["formats"]
    ]:
        assert row in DOCS
    for layout in readable["layouts"]:
        assert f"| {layout['name']} | {layout['about']} |" in DOCS
    assert DOCS.count("\n| ") == 4 + len(readable["formats"]) + len(readable["layouts"])


def test_refusals_and_the_command_line_name_every_format() -> None:
    with pytest.raises(WrongFileType) as refused:
        open_reader(Source("x", lambda: io.BytesIO(b"%PDF-1.4")))
    assert IN_WORDS in (refused.value.hint or "")
    shown = CliRunner().invoke(datasets.app, ["import", "--help"], terminal_width=400, env={"COLUMNS": "400"}).output
    assert IN_WORDS in " ".join(shown.split())


@pytest.mark.parametrize("name", ["a.b.jsonl", "a.b.ndjson.gz", "a.b.json", "a.b.tsv", "a.b.csv.gz", "a.b.parquet"])
def test_a_dataset_is_called_like_its_file_without_the_format(name: str) -> None:
    assert without_ending(name) == "a.b"


@pytest.mark.parametrize(
    "command", [command for layout in UNREAD for command in re.findall(r"steerboard ((?:[a-z-]+ ?)+)", layout.words)]
)
def test_a_command_that_is_advised_exists(command: str) -> None:
    assert CliRunner().invoke(command_line, [*command.split(), "--help"]).exit_code == 0
