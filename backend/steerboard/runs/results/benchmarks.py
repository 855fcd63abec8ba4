"""What finished benchmark runs found about reward models.

A model is known by its content, so that the same weights under another name have the same benchmarks; so is a dataset.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any

from sqlalchemy import Select, SQLColumnExpression, Text, func, literal, select
from sqlalchemy.dialects.postgresql import JSONB, distinct_on
from sqlalchemy.engine import Row
from sqlalchemy.orm import Session, aliased

from steerboard.datasets.tables import Dataset
from steerboard.registry.tables import Model
from steerboard.runs.inputs import MAIN_MODEL
from steerboard.runs.tables import Run, RunInput, RunOutput
from steerboard_contracts.report.benchmark import BenchmarkResult, FinishedBenchmark

# Datasets that a report shows of one model.
MOST_DATASETS = 20
# Thousands of items are for comparing, not for reading.
_WITHOUT_ITEMS = RunOutput.document.op("-", return_type=JSONB)(literal("items", Text))


def benchmarks_of(session: Session, model: Model, limit: int) -> list[FinishedBenchmark]:
    """Every finished benchmark of the model, the newest first."""
    query = _finished(model.project_id, [model.artifact_hash], _WITHOUT_ITEMS).order_by(Run.id.desc()).limit(limit)
    return [_out(row) for row in session.execute(query)]


def newest_with_items(session: Session, model: Model, dataset: Dataset | None = None) -> list[FinishedBenchmark]:
    """Its newest benchmark on each dataset, or on this one, with what it found by item; the newest first."""
    finished = _finished(model.project_id, [model.artifact_hash], RunOutput.document)
    if dataset is not None:
        finished = finished.where(Dataset.content_hash == dataset.content_hash)
    return _newest(session, finished).get(model.artifact_hash, [])


def newest_benchmarks(
    session: Session, project_id: uuid.UUID, hashes: Collection[str]
) -> dict[str, list[FinishedBenchmark]]:
    """The newest benchmark on each dataset by the model's content hash, the newest first."""
    return _newest(session, _finished(project_id, hashes, _WITHOUT_ITEMS)) if hashes else {}


def _newest(session: Session, finished: Select[*tuple[Any, ...]]) -> dict[str, list[FinishedBenchmark]]:
    one_a_dataset = (Model.artifact_hash, Dataset.content_hash)
    newest = finished.ext(distinct_on(*one_a_dataset)).order_by(*one_a_dataset, Run.id.desc())
    by_hash: dict[str, list[FinishedBenchmark]] = {}
    for row in sorted(session.execute(newest), key=lambda row: row.run_id, reverse=True):
        of_model = by_hash.setdefault(row.artifact_hash, [])
        if len(of_model) < MOST_DATASETS:
            of_model.append(_out(row))
    return by_hash


def _finished(
    project_id: uuid.UUID, hashes: Collection[str], document: SQLColumnExpression[Any]
) -> Select[*tuple[Any, ...]]:
    """Finished benchmarks. In a pipeline the model goes in as the output of a stage."""
    reward, pairs, made = aliased(RunInput), aliased(RunInput), aliased(RunOutput)
    return (
        select(
            Run.id.label("run_id"),
            Run.ended_at,
            Dataset.id.label("dataset_id"),
            Dataset.name.label("dataset"),
            Model.artifact_hash,
            document.label("document"),
        )
        .join(RunOutput, (RunOutput.run_id == Run.id) & (RunOutput.type == "benchmark"))
        .join(reward, (reward.run_id == Run.id) & (reward.name == "reward"))
        .outerjoin(
            made,
            (made.run_id == reward.upstream_run_id) & (made.name == func.coalesce(reward.upstream_output, MAIN_MODEL)),
        )
        .join(Model, Model.id == func.coalesce(reward.model_id, made.model_id))
        .join(pairs, (pairs.run_id == Run.id) & (pairs.name == "pairs"))
        .join(Dataset, Dataset.id == pairs.dataset_id)
        .where(Run.project_id == project_id, Model.artifact_hash.in_(hashes))
    )


def _out(row: Row[*tuple[Any, ...]]) -> FinishedBenchmark:
    return FinishedBenchmark(
        run_id=row.run_id,
        dataset_id=row.dataset_id,
        dataset=row.dataset,
        ended_at=row.ended_at,
        result=BenchmarkResult.model_validate(row.document),
    )
