"""The list of runs as a CSV file, and the key metric of each run."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from api_world import ApiWorld
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.runs.listing import run_table
from support.rows.listed_runs import Listed, list_run

RUNS = [
    Listed("sft", "demo-1", settings={"lr": 1e-5}, metrics={"loss": [3.0, 2.5], "eval_loss": [2.0, 1.5]}, hours=1),
    Listed("dpo", "demo-1", method="dpo", settings={"lr": 1e-4}, metrics={"eval_pair_accuracy": [0.5, 0.75]}, hours=2),
    Listed("=cmd()", method="grpo", tags=("+good", "two"), metrics={"kl": [0.1], "reward": [-1.0, -0.5]}, hours=3),
    Listed("mixture", kind="mix", method=None, settings={"note": '@SUM(1,"x")\nand more'}, hours=4),
    Listed("old", archived=True, hours=5),
]


@pytest.fixture
def runs(sessions: sessionmaker[Session], project: Project) -> dict[str, str]:
    """Ids by name."""
    with transaction(sessions) as session:
        made: dict[str, Any] = {}
        return {one.name: str(list_run(session, project, one, made)) for one in RUNS}


def table(world: ApiWorld, **asked: Any) -> list[dict[str, str]]:
    answer = world.client.get(world.url("run-table"), params=asked)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/csv")
    assert "attachment" in answer.headers["content-disposition"]
    return list(csv.DictReader(io.StringIO(answer.text)))


def test_the_key_metric_of_a_run_is_the_first_that_its_method_names_and_it_has(
    world: ApiWorld, runs: dict[str, str]
) -> None:
    key = {run["name"]: run["key_metric"] for run in world.get("runs")["items"]}
    assert key == {
        "sft": {"name": "eval_loss", "value": 1.5},
        "dpo": {"name": "eval_pair_accuracy", "value": 0.75},
        "=cmd()": {"name": "reward", "value": -0.5},
        "mixture": None,
    }


def test_the_table_has_every_run_of_the_filter_not_only_those_of_a_page(
    world: ApiWorld, runs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_table, "_RUNS_AT_ONCE", 1)
    assert [row["id"] for row in table(world, sort="created")] == [runs[one.name] for one in RUNS[:4]]
    rows = table(world, filter="pipeline = demo-1", sort="lr", column=["eval_loss.min", "lr", "state"])
    assert list(rows[0]) == ["run", "id", "tags", "eval_loss.min", "lr", "state"]
    assert [list(row.values()) for row in rows] == [
        ["demo-1.sft", runs["sft"], "", "1.5", "1e-05", "succeeded"],
        ["demo-1.dpo", runs["dpo"], "", "", "0.0001", "succeeded"],
    ]
    assert [row["run"] for row in table(world, kind="mix")] == ["mixture"]
    assert [row["run"] for row in table(world, filter="is:archived")] == ["old"]
    assert table(world, filter="name:nothing") == []


def test_without_columns_it_has_those_of_the_page(world: ApiWorld, runs: dict[str, str]) -> None:
    [row] = table(world, filter="name:dpo")
    assert (row["key_metric"], row["key_metric_value"]) == ("eval_pair_accuracy", "0.75")
    assert (row["kind"], row["method"], row["created"]) == ("train", "dpo", "2026-11-01T02:00:00+00:00")


def test_no_cell_is_a_formula(world: ApiWorld, runs: dict[str, str]) -> None:
    by_id = {row["id"]: row for row in table(world, column=["note", "reward"])}
    assert by_id[runs["=cmd()"]]["run"] == "'=cmd()"
    assert by_id[runs["=cmd()"]]["tags"] == "'+good, two"
    # A number stays a number, though it begins with a minus.
    assert by_id[runs["=cmd()"]]["reward"] == "-0.5"
    assert by_id[runs["mixture"]]["note"] == '\'@SUM(1,"x")\nand more'


def test_a_mistake_is_a_problem_and_no_file(world: ApiWorld, runs: dict[str, str]) -> None:
    for asked in ({"filter": "(a"}, {"sort": "nothing"}, {"column": "nothing"}):
        assert world.get("run-table", status=422, **asked)["code"] == "bad_filter"
    assert world.get("run-table", status=404, pipeline="nothing")["code"] == "not_found"
