"""What finished benchmark runs found about reward models.

A model is known by its content, so that the same weights under another name have the same benchmarks; so is a dataset.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.engine import Row
from sqlalchemy.orm import Session, aliased

from steerboard.datasets.tables import Dataset
from steerboard.registry.tables import Model
from steerboard.runs.inputs import MAIN_MODEL
from steerboard.runs.tables import Run, RunInput, RunOutput
from steerboard_contracts.report.benchmark import BenchmarkResult, FinishedBenchmark

# Datasets that a report shows of one model.
MOST_DATASETS = 20


def benchmarks_of(session: Session, model: Model, limit: int) -> list[FinishedBenchmark]:
    """Every finished benchmark of the model, the newest first."""
    found = _finished(model.project_id, [model.artifact_hash]).order_by(Run.id.desc()).limit(limit)
    return [_out(row) for row in session.execute(found)]


def newest_benchmarks(
    session: Session, project_id: uuid.UUID, hashes: Collection[str]
) -> dict[str, list[FinishedBenchmark]]:
    """By the model's content hash: its newest benchmark on each dataset, the newest first."""
    if not hashes:
        return {}
    one_a_dataset = (Model.artifact_hash, Dataset.content_hash)
    newest = _finished(project_id, hashes).ext(distinct_on(*one_a_dataset)).order_by(*one_a_dataset, Run.id.desc())
    found: dict[str, list[FinishedBenchmark]] = {}
    for row in sorted(session.execute(newest), key=lambda row: row.run_id, reverse=True):
        of_model = found.setdefault(row.artifact_hash, [])
        if len(of_model) < MOST_DATASETS:
            of_model.append(_out(row))
    return found


def _finished(project_id: uuid.UUID, hashes: Collection[str]) -> Select[*tuple[Any, ...]]:
    """In a pipeline the model goes in as the output of a stage."""
    reward, pairs, made = aliased(RunInput), aliased(RunInput), aliased(RunOutput)
    return (
        select(
            Run.id.label("run_id"),
            Run.ended_at,
            Dataset.id.label("dataset_id"),
            Dataset.name.label("dataset"),
            Model.artifact_hash,
            RunOutput.document,
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
