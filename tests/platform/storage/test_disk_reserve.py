"""Large writes leave the reserve of their disk alone, and nothing half-written behind."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch

from steerboard.datasets.imports.files import ImportFiles
from steerboard.datasets.imports.sources import import_sources_of
from steerboard.datasets.imports.tables import Import
from steerboard.platform.storage import scratch
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.platform.storage.from_url import open_storage
from steerboard.platform.storage.local_cache import LocalCache
from steerboard.registry.local_copies import materialise
from steerboard_contracts.errors import NoSpaceLeft
from steerboard_contracts.files.disk import Disk
from steerboard_contracts.files.local_folders import LocalFolders
from steerboard_workers.stages.models.foreign import copy_model
from steerboard_workers.stages.training.checkpoints import Checkpoints
from support.processes.small_disk import MB, fill, free, small_disk

# A twentieth of it, so 2 MB, is the reserve.
DISK_MB = 40
SIZE = 3 * MB


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", DISK_MB) as place:
        monkeypatch.setattr(tempfile, "tempdir", str(place))
        yield place


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(bytes(SIZE))
    return folder


def store_artifact(disk: Path, model: Path) -> None:
    ArtifactStore(f"file://{disk / 'store'}").put_folder(model)


def fetch_artifact(disk: Path, model: Path) -> None:
    store = ArtifactStore(f"file://{model.parent / 'store'}")
    store.fetch(store.put_folder(model), disk / "fetched")


def fill_cache(disk: Path, model: Path) -> None:
    store = ArtifactStore(f"file://{model.parent / 'store'}")
    with ExitStack() as holds:
        materialise(store, store.put_folder(model), LocalCache(disk / "cache", 100), holds)


def store_backup(disk: Path, model: Path) -> None:
    with (model / "model.safetensors").open("rb") as content:
        open_storage(str(disk / "backups"), private=True).put("backups/one/tables/runs.gz", content)


def write_download(disk: Path, model: Path) -> None:
    with scratch.file("an export") as file:
        file.write(bytes(SIZE))
        file.flush()


def copy_foreign_model(disk: Path, model: Path) -> None:
    with LocalFolders(roots=(model.parent,)).open(str(model)) as folder:
        copy_model(folder, Path(tempfile.mkdtemp(dir=disk)), Disk(disk, "the model"))


def save_checkpoint(disk: Path, model: Path) -> None:
    store = Checkpoints(disk / "checkpoints", 1, ["s"], log=lambda message: None)
    store.save(10, [("weight", torch.zeros(SIZE // 4))], {}, {})


WRITERS = [
    store_artifact,
    fetch_artifact,
    fill_cache,
    store_backup,
    write_download,
    copy_foreign_model,
    save_checkpoint,
]


@pytest.mark.parametrize("write", WRITERS)
def test_a_large_write_stops_before_the_reserve_and_leaves_nothing_behind(
    disk: Path, model: Path, write: Callable[[Path, Path], None]
) -> None:
    reserve = Disk(disk, "it").reserve
    # Most of it fits, and all of it would with a part of the reserve.
    ballast = fill(disk, reserve + SIZE - MB // 2)
    before = free(disk)
    with pytest.raises(NoSpaceLeft, match="kept for the database"):
        write(disk, model)
    assert free(disk) > before - SIZE // 8, "what it had written is given back"
    ballast.unlink()
    write(disk, model)


def test_each_file_of_a_hub_import_is_refused_before_it_is_fetched_when_it_is_larger_than_the_room(disk: Path) -> None:
    listed = [{"label": f"train/{place}.jsonl", "size": 2 * DISK_MB * MB} for place in range(2)]
    row = Import(id=uuid.uuid4(), hub="org/pairs@" + "c" * 40, files=listed)
    for source in import_sources_of(ImportFiles(f"file://{disk}"), row):
        with pytest.raises(NoSpaceLeft, match="kept for the database"):
            source.open()
