"""A backup that anyone has changed restores nothing at all: no row, no blob, no key."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from maintenance_world import Place
from sqlalchemy import Engine

from steerboard.maintenance import database_catalogue, manifest
from steerboard.maintenance.errors import BadBackup
from steerboard.platform.storage.artifacts import CorruptArtifact

_NO_HASH = "../../../../etc/passwd"


class Tampered:
    def __init__(self, place: Place) -> None:
        made = place.back_up(keys=place.world.secrets)
        self.place = place
        self.root = Path(place.dest)
        self.backup = self.root / "backups" / made.manifest.name
        self.manifest = self.backup / "manifest.json"

    def restores_nothing(self) -> None:
        with pytest.raises((BadBackup, CorruptArtifact)):
            self.place.restore()
        store = Path(self.place.store.url.removeprefix("file://"))
        assert not store.exists()
        assert not self.place.home.exists()

    def claim(self, change: Callable[[dict[str, Any]], object]) -> None:
        """A changed manifest, with a hash that fits."""
        body = json.loads(self.manifest.read_bytes())["backup"]
        change(body)
        self.manifest.write_bytes(manifest.written(body))


@pytest.fixture
def tampered(place: Place) -> Tampered:
    return Tampered(place)


def is_empty(engine: Engine) -> bool:
    with engine.connect() as connection:
        return not database_catalogue.tables(connection)


@pytest.mark.parametrize("of_manifest", [15, pytest.param(2000, marks=pytest.mark.long)])
def test_no_byte_of_a_backup_can_be_changed(tampered: Tampered, of_manifest: int) -> None:
    draw = random.Random(1)
    files = [path for path in tampered.root.rglob("*") if path.is_file()]
    assert len(files) > 20
    for path in files:
        content = path.read_bytes()
        # The manifest at many places, because it is parsed; other files are hashed as a whole.
        count = of_manifest if path == tampered.manifest else 1
        places = draw.sample(range(len(content)), min(count, len(content)))
        for at in places:
            for other in {content[at] ^ 1 << draw.randrange(8), ord(" ")} - {content[at]}:
                path.write_bytes(content[:at] + bytes([other]) + content[at + 1 :])
                tampered.restores_nothing()
        path.write_bytes(content[:-1])
        tampered.restores_nothing()
        path.write_bytes(content + b"\n")
        tampered.restores_nothing()
        path.write_bytes(content)
    assert is_empty(tampered.place.empty)
    tampered.place.restore()  # it was whole all the time


def test_no_file_of_a_backup_can_be_taken_away_or_added_or_be_a_link(tampered: Tampered, tmp_path: Path) -> None:
    aside = tmp_path / "aside"
    for path in [path for path in tampered.root.rglob("*") if path.is_file()]:
        path.rename(aside)
        tampered.restores_nothing()
        path.symlink_to(aside)
        tampered.restores_nothing()
        path.unlink()
        aside.rename(path)
    for folder in (tampered.backup, tampered.backup / "tables", tampered.root / "blobs"):
        folder.rename(aside)
        folder.symlink_to(aside)
        tampered.restores_nothing()
        folder.unlink()
        aside.rename(folder)
    for extra in ("tables/more.gz", "more", "tables/.samples.gz"):
        (tampered.backup / extra).write_bytes(b"more")
        tampered.restores_nothing()
        (tampered.backup / extra).unlink()
    os.mkfifo(tampered.backup / "pipe")
    tampered.restores_nothing()
    (tampered.backup / "pipe").unlink()
    assert is_empty(tampered.place.empty)
    tampered.place.restore()


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body["blobs"][0].update(sha256=_NO_HASH),
        lambda body: body["blobs"][0].update(sha256="ab"),
        lambda body: body["blobs"][0].update(sha256=body["blobs"][0]["sha256"].upper()),
        lambda body: body["tables"][0].update(name="../../../blobs/x"),
        lambda body: body["tables"].append(body["tables"][0]),
        lambda body: body["tables"].pop(),
        lambda body: body["imports"].append({**body["blobs"][0], "name": "../blobs/ab/x"}),
        lambda body: body["imports"].append({**body["blobs"][0], "name": "/etc/x"}),
        lambda body: body.update(name="../other"),
        lambda body: body.update(key_sha256=None),
        lambda body: body["sequences"].update({"pg_catalog.pg_class": 1}),
    ],
)
def test_no_name_of_a_manifest_leads_elsewhere(tampered: Tampered, change: Callable[[dict[str, Any]], object]) -> None:
    tampered.claim(change)
    tampered.restores_nothing()
    assert is_empty(tampered.place.empty)


@pytest.mark.parametrize(
    "umask", [pytest.param(0, marks=pytest.mark.long), pytest.param(0o22, marks=pytest.mark.long), 0o777]
)
def test_a_backup_is_for_its_owners_eyes_only_whatever_the_umask(place: Place, umask: int) -> None:
    blobs = Path(place.dest) / "blobs"
    blobs.mkdir(parents=True)
    blobs.chmod(0o755)  # of an older version
    before = os.umask(umask)
    try:
        place.back_up(keys=place.world.secrets)
        place.restore()
    finally:
        os.umask(before)
    made = list(Path(place.dest).rglob("*"))
    assert {path.stat().st_mode & 0o777 for path in made if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in made if path.is_file()} == {0o600}
    assert (place.home / "secret.key").stat().st_mode & 0o777 == 0o600
    shutil.rmtree(place.dest)
