"""Several answers to one prompt stay one group, from a stage's output to another stage's input and through files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker
from test_export import exported, records

from steerboard.accounts.tables import Project
from steerboard.datasets import service
from steerboard.datasets.schemas import ImportReport
from steerboard.platform.database import transaction
from steerboard_contracts.errors import BadRow

BASE = "/api/v1/projects/default/datasets"
# Groups 4 and 9 answer prompts of equal text; two answers of group 9 are equal.
ROWS = [
    {"prompt": "Why?", "response": said, "group": group, "candidate": candidate}
    for group, answers in ((4, ["a", "b"]), (9, ["a", "a", "c"]))
    for candidate, said in enumerate(answers)
]
PLACES = [(row["group"], row["candidate"]) for row in ROWS]

Write = Callable[..., Path]


def places(rows: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    return [(row.get("group"), row.get("candidate")) for row in rows]


@pytest.fixture
def labelled(sessions: sessionmaker[Session], project: Project, write_jsonl: Write) -> str:
    with transaction(sessions) as session:
        answers = service.register_rows(
            session, project, name="answers", kind="instructions", path=write_jsonl(ROWS), run_id=None
        )
        source = service.imported_source(session, project, "judge")
        grades = write_jsonl([{"row": row, "value": row / 2} for row in range(len(ROWS))], "grades.jsonl")
        service.record_rewards(session, answers, source, grades)
        service.pin_labelled(session, project, name="labelled", dataset=answers, source=source, run_id=None)
    return "labelled"


def test_a_stage_reads_groups_of_labelled_rows(
    sessions: sessionmaker[Session], project: Project, labelled: str, tmp_path: Path
) -> None:
    with sessions() as session:
        service.export_for_stage(session, service.get_dataset(session, project, labelled), tmp_path / "stage.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "stage.jsonl").read_text().splitlines()]
    assert places(rows) == PLACES
    assert [row["reward"] for row in rows] == [0, 0.5, 1, 1.5, 2]


def test_a_page_shows_one_group_by_its_index(
    client: TestClient, sessions: sessionmaker[Session], labelled: str
) -> None:
    def shown(**filters: Any) -> list[int]:
        page = client.get(f"{BASE}/{labelled}/samples", params=filters).json()
        return [item["row"] for item in page["items"]]

    assert shown(group=9) == [2, 3, 4]
    assert shown(group=9, reward_min=1.5) == [3, 4]
    assert shown(group=5) == []
    assert client.get(f"{BASE}/{labelled}/samples/count", params={"group": 4}).json() == {"rows": 2, "exact": True}
    assert client.get(f"{BASE}/{labelled}/samples", params={"group": -1}).status_code == 422
    with sessions() as session:
        session.execute(text("SET enable_seqscan = off"))
        query = "EXPLAIN SELECT row FROM samples WHERE dataset_id = '{}' AND ((sample ->> 'group'::text)::bigint) = 9"
        plan = session.scalars(text(query.format("00000000-0000-0000-0000-000000000000"))).all()
    assert any("ix_samples_group" in line for line in plan)


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_groups_go_through_a_file(
    sessions: sessionmaker[Session],
    project: Project,
    labelled: str,
    tmp_path: Path,
    import_path: Callable[..., ImportReport],
    form: Any,
) -> None:
    content = exported(sessions, project, labelled, form)
    assert places(records(content)) == PLACES
    path = tmp_path / "file"
    path.write_bytes(content)
    again = import_path(path, "again")
    assert again.rows == len(ROWS), "cleaning must not take an answer out of its group"
    with sessions() as session:
        hashes = {service.get_dataset(session, project, name).content_hash for name in (labelled, "again")}
    assert places(records(exported(sessions, project, "again", form))) == PLACES
    assert len(hashes) == 1


def test_a_csv_gives_whole_numbers(
    tmp_path: Path, import_path: Callable[..., ImportReport], client: TestClient
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("prompt,response,group,candidate\nWhy?,a,3,0\nWhy?,b,3,1\nHow?,c,,\n")
    assert import_path(path, "rows").rows == 3
    items = client.get(f"{BASE}/rows/samples").json()["items"]
    assert places([item["sample"] for item in items]) == [(3, 0), (3, 1), (None, None)]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"group": 3}, "has a group without a candidate"),
        ({"candidate": 0}, "has a candidate without a group"),
        ({"group": -1, "candidate": 0}, "group: is less than 0"),
        ({"group": 1.5, "candidate": 0}, "group"),
        ({"group": True, "candidate": 0}, "group: is not a whole number"),
        ({"group": 2**53, "candidate": 0}, "group: is 9007199254740992 or more"),
    ],
)
def test_a_row_with_half_a_place_or_none_that_counts_is_refused(
    sessions: sessionmaker[Session], project: Project, write_jsonl: Write, more: dict[str, Any], words: str
) -> None:
    path = write_jsonl([{"prompt": "Why?", "response": "a", **more}])
    with sessions() as session, pytest.raises(BadRow, match="line 1") as refused:
        service.register_rows(session, project, name="rows", kind="instructions", path=path, run_id=None)
    assert words in refused.value.detail


@pytest.mark.parametrize("more", [{"group": "maths"}, {"group": 3}, {"group": "a", "candidate": "Obama"}])
def test_columns_of_that_name_that_mean_something_else_are_kept_as_they_are(
    write_jsonl: Write, import_path: Callable[..., ImportReport], client: TestClient, more: dict[str, Any]
) -> None:
    assert import_path(write_jsonl([{"prompt": "Why?", "response": "a", **more}]), "rows").rows == 1
    (item,) = client.get(f"{BASE}/rows/samples").json()["items"]
    assert item["extra"] == more


def test_equal_answers_of_a_group_count_as_repeated(client: TestClient, labelled: str) -> None:
    assert client.get(f"{BASE}/answers/statistics").json()["duplicates"]["repeated_rows"] == 2
