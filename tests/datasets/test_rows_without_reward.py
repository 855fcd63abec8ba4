"""Labelled rows that have attributes and no reward: stored, exported, counted, and left out where rewards decide."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets import service
from steerboard.datasets.conversions.picker import methods_for
from steerboard.datasets.errors import RewardsMismatch, RowsRefused
from steerboard.datasets.parsing.mapping import plan_mapping
from steerboard.datasets.queries import reward_sources
from steerboard.datasets.rewards.service import store_rewards
from steerboard.datasets.rows.exporting import export_records
from steerboard.datasets.tables import Dataset
from steerboard.insights.previews import labelled_dataset
from steerboard.platform.database import transaction
from steerboard_contracts.errors import BadInput
from steerboard_files.errors import UnknownColumn

Write = Callable[..., Path]
Import = Callable[..., Any]
REWARDS = [1.0, None, 3.0, None]


def rows(rewards: list[float | None]) -> list[dict[str, Any]]:
    return [
        {"prompt": f"Hi {n // 2}", "response": f"a{n}", "reward": reward, "attributes": {"wit": n}}
        for n, reward in enumerate(rewards)
    ]


def test_some_rows_may_lack_one(
    sessions: sessionmaker[Session], project: Project, write_jsonl: Write, import_path: Import, tmp_path: Path
) -> None:
    made = import_path(write_jsonl(rows(REWARDS)), "graded").dataset
    assert (made.kind, made.rows, made.normaliser.n, made.normaliser.mean) == ("labelled", 4, 2, 2.0)
    with transaction(sessions) as session:
        dataset = session.get_one(Dataset, made.id)
        assert [source.figures.n for source in reward_sources(session, dataset)] == [2]
        assert [row.get("reward") for row in export_records(session, dataset)] == REWARDS
        for form in ("jsonl", "parquet"):
            with (tmp_path / form).open("wb") as file:
                service.write_export(session, dataset, form, file)  # type: ignore[arg-type]
        lines = Path(service.export_for_stage(session, dataset, tmp_path / "stage.jsonl").path).read_text().splitlines()
        assert ['"reward"' in line for line in lines] == [True, False, True, False]
        with pytest.raises(RewardsMismatch, match="pins rewards of 2 of its 4 rows"):
            store_rewards(session, dataset, service.get_source(session, project, "graded"), _graded())
        fits = {fit.method: fit for fit in methods_for(session, project, dataset).methods}
        assert fits["rwr"].why_not == "2 rows have no reward"
        ranks = next(way for way in fits["dpo"].ways if way.conversion == "pairs_from_ranks")
        assert ranks.lost_by == {"no_reward": 2, "alone": 2}
    for form in ("jsonl", "parquet"):
        assert import_path(tmp_path / form, f"again-{form}").dataset.content_hash == made.content_hash


def _graded() -> list[tuple[int, int, float]]:
    return [(row + 1, row, float(row)) for row in range(4)]


def test_all_rows_may_lack_one(
    sessions: sessionmaker[Session], project: Project, write_jsonl: Write, import_path: Import
) -> None:
    made = import_path(write_jsonl(rows([None] * 4)), "graded").dataset
    assert (made.kind, made.reward_source, made.normaliser, made.rewards) == ("labelled", None, None, None)
    with transaction(sessions) as session:
        dataset = session.get_one(Dataset, made.id)
        with pytest.raises(BadInput) as refused:
            labelled_dataset(session, project, "graded")
        assert refused.value.code == "rows_without_reward"
        source = service.imported_source(session, project, "judge")
        store_rewards(session, dataset, source, _graded())
        scored = service.pin_labelled(session, project, name="scored", dataset=dataset, source=source, run_id=None)
        assert [row["reward"] for row in export_records(session, scored)] == [0.0, 1.0, 2.0, 3.0]
        assert [row["attributes"] for row in export_records(session, scored)] == [{"wit": n} for n in range(4)]


def test_a_row_with_neither_is_named(write_jsonl: Write, import_path: Import) -> None:
    bare = [*rows([1.0, 2.0]), {"prompt": "Hi", "response": "Hello"}, {"prompt": "Hi", "response": "x", "reward": None}]
    with pytest.raises(RowsRefused) as refused:
        import_path(write_jsonl(bare), "bad", kind="labelled")
    assert refused.value.extra["bad_counts"] == {"row: needs a `reward`, or `attributes`": 1, "reward: is null": 1}


def test_columns_need_a_reward_or_an_attribute() -> None:
    row = {"prompt": "Hi", "response": "Hello", "wit": 3}
    given = {"attributes.wit": "wit"}
    mapping = plan_mapping(None, list(row), [row], given)
    assert (mapping.kind, mapping.columns.get("reward")) == ("labelled", None)
    texts = {"prompt": "Hi", "response": "Hello", "attributes": {"language": "en"}}
    assert plan_mapping(None, list(texts), [texts], {}).kind == "instructions"
    with pytest.raises(UnknownColumn, match="no column was found for reward"):
        plan_mapping("labelled", list(row), [row], {})
