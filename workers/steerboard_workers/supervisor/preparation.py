"""Turns a run's inputs in the database into local files and stage.json."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets import service as datasets
from steerboard.datasets.schemas import ExportSplit
from steerboard.datasets.tables import Dataset
from steerboard.evaluation import stage_files
from steerboard.platform.database import patiently, transaction
from steerboard.platform.processes import llama_cpp, vllm
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore, Manifest
from steerboard.platform.storage.disk import create_file
from steerboard.platform.storage.local_cache import LocalCache
from steerboard.registry import service as registry
from steerboard.registry.local_copies import materialise
from steerboard.registry.tables import Model
from steerboard.registry.uploads import service as uploads
from steerboard.runs import inputs
from steerboard.runs.tables import Run
from steerboard_contracts.files.base_sources import source_type
from steerboard_contracts.files.local_folders import LocalFolders
from steerboard_contracts.methods import needed_method
from steerboard_contracts.online.reward_access import RewardAccess
from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.run_config import RunConfig, stored_config
from steerboard_contracts.run_kinds.base import BaseModelConfig
from steerboard_contracts.run_kinds.gguf import GgufConfig
from steerboard_contracts.run_kinds.push import PushConfig
from steerboard_contracts.samples import SampleKind
from steerboard_contracts.stage.inputs import DatasetInput, ModelInput, StageInput
from steerboard_contracts.stage.spec import UPLOADED, EngineProcess, Shard, StageSpec
from steerboard_contracts.training import TrainingConfig

# For the first rows of a large dataset: they are sorted first.
_EXPORT_SECONDS = 600
_ROWS, _ABOUT, _EXPORT = "rows.jsonl", "input.json", "export"


def prepare(
    sessions: sessionmaker[Session],
    store: ArtifactStore,
    settings: Settings,
    run: Run,
    home: Path,
    folder: Path,
    holds: ExitStack,
    *,
    threads: int,
) -> StageSpec:
    """Bring every input of `run` into the cache under `home`, where it stays until `holds` is closed, or into the
    attempt's own `folder`, and describe the stage.

    Raises `UnusableInput`, `BadInput` for a model that is no longer uploaded, `CorruptArtifact`, `StoreUnavailable`,
    `NoSpaceLeft`."""
    cache = LocalCache(home / "cache", settings.cache_mb)
    with transaction(sessions) as session:
        things = inputs.resolve(session, run)
        of_evaluation = stage_files.inputs_of(session, run, folder)
        config = stored_config(run.config)
        uploaded = _uploaded(session, run, config)
    count = int(run.config.get("shards") or 1)
    return StageSpec(
        run_id=str(run.id),
        attempt=run.attempt,
        day=_launched(sessions, run).date(),
        name=run.name,
        config=config,
        inputs={
            name: _exported(sessions, thing, folder / _EXPORT)
            if isinstance(config, PushConfig) and isinstance(thing, Dataset)
            else _localise(sessions, store, thing, cache, holds)
            for name, thing in things.items()
        }
        | of_evaluation
        | ({} if uploaded is None else {UPLOADED: _folder(store, "uploaded", uploaded, cache, holds)}),
        shard=Shard(index=run.shard, count=count) if run.shard is not None else Shard(),
        threads=threads,
        folders=_folders(settings, config),
        disk_reserve_mb=settings.disk_reserve_mb,
        caches=_log_prob_caches(run, config, things, cache, holds),
        reward_access=_reward_access(settings, config),
        vllm=_vllm_process(settings, home, config),
        llama_cpp=_llama_cpp_process(settings, config),
    )


def _launched(sessions: sessionmaker[Session], run: Run) -> datetime:
    """The time at which the run, or the one that it is a shard of, was launched, in UTC."""
    if run.parent_id is None:
        return run.created_at.astimezone(UTC)
    with transaction(sessions) as session:
        return session.get_one(Run, run.parent_id).created_at.astimezone(UTC)


def _log_prob_caches(
    run: Run, config: RunConfig, things: dict[str, Dataset | Model], cache: LocalCache, holds: ExitStack
) -> dict[str, str]:
    """A folder for each frozen model, by name, that the runs of a project share for what they read from it. It leaves
    with the rest of the cache; what a run finds in it has its own key."""
    if not isinstance(config, TrainingConfig):
        return {}
    read = {model.name for model in needed_method(config.method).frozen if "log_probs" in model.uses}
    folders = {}
    for name in sorted(read):
        model = things.get(name, things.get("model"))
        if isinstance(model, Model):
            key = f"{run.project_id}-{model.artifact_hash}"
            folder = cache.take("log-probs", key, size=0, fill=_nothing, intact=Path.is_dir, holds=holds)
            folders[name] = str(folder)
    return folders


def _vllm_process(settings: Settings, home: Path, config: RunConfig) -> EngineProcess | None:
    """The process of stages that run by another Python than vLLM's. Raises `EngineMissing`."""
    harness = config.run == "academic" and getattr(config, "endpoint", None) is None
    apart = harness or isinstance(config, OnlineConfig)
    if not apart or getattr(config, "engine", None) != "vllm":
        return None
    python = vllm.require_python(settings)
    return EngineProcess(python=str(python), variables=vllm.variables(python, home))


def _llama_cpp_process(settings: Settings, config: RunConfig) -> EngineProcess | None:
    """Raises `EngineMissing`."""
    if not isinstance(config, GgufConfig):
        return None
    python = llama_cpp.require_python(settings)
    return EngineProcess(python=str(python), variables={"PYTHONPATH": str(llama_cpp.converter_of(python))})


def _folders(settings: Settings, config: RunConfig) -> LocalFolders:
    allowed = {"base": settings.model_folders, "academic": settings.task_folders}
    return allowed.get(config.run, LocalFolders())


def _reward_access(settings: Settings, config: RunConfig) -> RewardAccess:
    if not (isinstance(config, OnlineConfig) and config.rewards_outside):
        return RewardAccess()
    return RewardAccess(folders=settings.reward_folders, allowed_private=settings.allowed_private)


def _nothing(folder: Path) -> None:
    """A folder of the cache that is filled later."""


def _uploaded(session: Session, run: Run, config: RunConfig) -> Manifest | None:
    if not isinstance(config, BaseModelConfig) or source_type(config.source) != "upload":
        return None
    return uploads.finished(session, session.get_one(Project, run.project_id), config.source)


def _folder(store: ArtifactStore, name: str, manifest: Manifest, cache: LocalCache, holds: ExitStack) -> ModelInput:
    path = str(materialise(store, manifest, cache, holds))
    return ModelInput(name=name, path=path, content_hash=manifest.hash)


def _localise(
    sessions: sessionmaker[Session], store: ArtifactStore, thing: Dataset | Model, cache: LocalCache, holds: ExitStack
) -> StageInput:
    if isinstance(thing, Dataset):
        return _dataset(sessions, thing, cache, holds)
    with transaction(sessions) as session:
        manifest = registry.manifest_of(session, thing)
    return _folder(store, thing.name, manifest, cache, holds)


def _dataset(sessions: sessionmaker[Session], dataset: Dataset, cache: LocalCache, holds: ExitStack) -> DatasetInput:
    """The jsonl file of a dataset and the result of `export_for_stage`.

    Keyed by id: rows never change, and equal rows in another project have another split.
    """

    def export(folder: Path) -> None:
        with transaction(sessions) as session:
            # A slow disk may keep the server waiting, and this transaction holds no lock that anyone could wait for.
            session.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
            with patiently(session, _EXPORT_SECONDS):
                described = datasets.export_for_stage(session, session.get_one(Dataset, dataset.id), folder / _ROWS)
        (folder / _ABOUT).write_text(described.model_dump_json())

    # Files that were touched are exported again: that costs little more than checking them.
    folder = cache.take("datasets", str(dataset.id), size=0, fill=export, intact=lambda _: False, holds=holds)
    described = DatasetInput.model_validate_json((folder / _ABOUT).read_bytes())
    return described.model_copy(update={"path": str(folder / _ROWS)})


def _exported(sessions: sessionmaker[Session], dataset: Dataset, folder: Path) -> DatasetInput:
    """Exports for outside readers: `folder` with a parquet file of each split that has rows, as an export writes
    them."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    splits: dict[ExportSplit, int] = {
        "train": dataset.rows - dataset.held_out_rows,
        "held_out": dataset.held_out_rows,
    }
    for split, rows in splits.items():
        if rows:
            with transaction(sessions) as session, patiently(session, _EXPORT_SECONDS):
                session.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
                with create_file(folder / "data" / f"{split}-00000-of-00001.parquet", "a copy of a dataset") as file:
                    datasets.write_export(session, session.get_one(Dataset, dataset.id), "parquet", file, split)
    return DatasetInput(
        name=dataset.name,
        path=str(folder),
        kind=cast(SampleKind, dataset.kind),
        rows=dataset.rows,
        content_hash=dataset.content_hash,
    )
