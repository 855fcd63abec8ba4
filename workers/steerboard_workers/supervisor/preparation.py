"""From a run's inputs in the database to local files and stage.json."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker

from steerboard.datasets import service as datasets
from steerboard.datasets.tables import Dataset
from steerboard.evaluation import stage_files
from steerboard.platform.artifacts import ArtifactStore
from steerboard.platform.database import transaction
from steerboard.platform.local_cache import LocalCache
from steerboard.platform.settings import Settings
from steerboard.registry import service as registry
from steerboard.registry.local_copies import materialise
from steerboard.registry.tables import Model
from steerboard.runs import inputs
from steerboard.runs.tables import Run
from steerboard_contracts.configs import RUN_CONFIG
from steerboard_contracts.stage import DatasetInput, ModelInput, Shard, StageInput, StageSpec

_ROWS, _ABOUT = "rows.jsonl", "input.json"


def prepare(
    sessions: sessionmaker[Session],
    store: ArtifactStore,
    settings: Settings,
    run: Run,
    home: Path,
    folder: Path,
    holds: ExitStack,
) -> StageSpec:
    """Bring every input of `run` into the cache under `home`, where it stays until `holds` is closed, or into the
    attempt's own `folder`, and describe the stage.

    Raises `UnusableInput`, `CorruptArtifact`, `StoreUnavailable`, OSError when the disk is full."""
    cache = LocalCache(home / "cache", settings.cache_mb)
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
        inputs={name: _localise(sessions, store, thing, cache, holds) for name, thing in things.items()}
        | of_evaluation,
        shard=Shard(index=run.shard, count=count) if run.shard is not None else Shard(),
        threads=settings.stage_threads,
    )


def _localise(
    sessions: sessionmaker[Session], store: ArtifactStore, thing: Dataset | Model, cache: LocalCache, holds: ExitStack
) -> StageInput:
    if isinstance(thing, Dataset):
        return _dataset(sessions, thing, cache, holds)
    with transaction(sessions) as session:
        cost, shared = inputs.training_cost(session, thing)
        manifest = registry.manifest_of(session, thing)
    return ModelInput(
        name=thing.name,
        path=str(materialise(store, manifest, cache, holds)),
        content_hash=thing.artifact_hash,
        cost_seconds=cost,
        shared_seconds=shared,
    )


def _dataset(sessions: sessionmaker[Session], dataset: Dataset, cache: LocalCache, holds: ExitStack) -> DatasetInput:
    """The jsonl file of a dataset and, beside it, what `export_for_stage` said of it.

    Keyed by id: rows never change, and equal rows in another project have another split.
    """

    def export(folder: Path) -> None:
        with transaction(sessions) as session:
            # A slow disk may keep the server waiting, and this transaction holds no lock that anybody could wait for.
            session.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
            described = datasets.export_for_stage(session, session.get_one(Dataset, dataset.id), folder / _ROWS)
        (folder / _ABOUT).write_text(described.model_dump_json())

    # Rows that somebody touched are exported again: it costs little more than to tell what happened to them.
    folder = cache.take("datasets", str(dataset.id), size=0, fill=export, intact=lambda _: False, holds=holds)
    described = DatasetInput.model_validate_json((folder / _ABOUT).read_bytes())
    return described.model_copy(update={"path": str(folder / _ROWS)})
