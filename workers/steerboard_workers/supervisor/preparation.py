"""From a run's inputs in the database to local files and stage.json."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker

from steerboard.datasets import service as datasets
from steerboard.datasets.tables import Dataset
from steerboard.evaluation import stage_files
from steerboard.platform.artifacts import ArtifactStore
from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard.registry import service as registry
from steerboard.registry.tables import Model
from steerboard.runs import inputs
from steerboard.runs.tables import Run
from steerboard_contracts.configs import RUN_CONFIG
from steerboard_contracts.stage import DatasetInput, ModelInput, Shard, StageInput, StageSpec


def prepare(
    sessions: sessionmaker[Session], store: ArtifactStore, settings: Settings, run: Run, home: Path, folder: Path
) -> StageSpec:
    """Bring every input of `run` into the cache under `home`, or into the attempt's own `folder`, and describe the
    stage. Raises `UnusableInput`, `CorruptArtifact`, OSError when the disk is full."""
    with transaction(sessions) as session:
        things = inputs.resolve(session, run)
        of_evaluation = stage_files.inputs_of(session, run, folder)
    config = RUN_CONFIG.validate_python(run.config)
    count = int(run.config.get("shards") or 1)
    return StageSpec(
        run_id=str(run.id),
        attempt=run.attempt,
        name=run.name,
        config=config,
        inputs={name: _localise(sessions, store, thing, home / "cache") for name, thing in things.items()}
        | of_evaluation,
        shard=Shard(index=run.shard, count=count) if run.shard is not None else Shard(),
        threads=settings.stage_threads,
    )


def _localise(sessions: sessionmaker[Session], store: ArtifactStore, thing: Dataset | Model, cache: Path) -> StageInput:
    with transaction(sessions) as session:
        # Fetching a large model takes long, and this transaction holds no lock that anybody could wait for.
        session.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        if isinstance(thing, Dataset):
            return _dataset(session, thing, cache)
        cost, shared = inputs.training_cost(session, thing)
        folder = registry.materialise(session, store, thing, cache / "models")
        return ModelInput(
            name=thing.name,
            path=str(folder),
            content_hash=thing.artifact_hash,
            cost_seconds=cost,
            shared_seconds=shared,
        )


def _dataset(session: Session, dataset: Dataset, cache: Path) -> DatasetInput:
    """The jsonl file of a dataset and, beside it, what `export_for_stage` said of it; both renamed into place.

    Keyed by id: rows never change, and equal rows in another project have another split.
    """
    folder = cache / "datasets"
    folder.mkdir(parents=True, exist_ok=True)
    rows, about = folder / f"{dataset.id}.jsonl", folder / f"{dataset.id}.json"
    if rows.is_file() and about.is_file():
        return DatasetInput.model_validate_json(about.read_bytes())
    described = datasets.export_for_stage(session, dataset, rows)
    partial = folder / f".{dataset.id}.{os.getpid()}.partial"
    partial.write_text(described.model_dump_json())
    partial.replace(about)
    return described
