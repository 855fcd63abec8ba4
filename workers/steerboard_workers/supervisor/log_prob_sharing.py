"""Log-probs of frozen models that a run has computed, through the artifact store to workers on other machines.

When a run has succeeded, its rows become one file, `log-probs/PROJECT-MODEL/RUN-SHA256.jsonl`. Before a run starts,
files that its machine lacks are fetched into the folder of its cache. Each row has its own key, so a file can be
superfluous but not stale, and its name has the hash of its content. Whatever fails here costs time and no result: it is
logged.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import re
import uuid
from collections.abc import Collection
from pathlib import Path

from steerboard.platform.storage.artifacts import LOG_PROBS, ArtifactStore, verified
from steerboard.platform.storage.disk import create_file
from steerboard_contracts.errors import SteerboardError

log = logging.getLogger(__name__)

_NAME = re.compile(r"(?P<run>[0-9a-f-]{36})-(?P<sha256>[0-9a-f]{64})\.jsonl", re.ASCII)


def fetch(store: ArtifactStore, folders: Collection[Path]) -> None:
    """What other machines have stored for these folders, whose names are the store's too."""
    for folder in folders:
        prefix = f"{LOG_PROBS}{folder.name}/"
        try:
            for file in store.storage.files(prefix):
                if match := _NAME.fullmatch(file.name.removeprefix(prefix)):
                    _fetch(store, file.name, folder, match["run"], match["sha256"])
        except (SteerboardError, OSError) as error:
            log.warning("log-probs of %s are not fetched: %s", folder.name, error)


def _fetch(store: ArtifactStore, name: str, folder: Path, run: str, sha256: str) -> None:
    target = folder / f"a0-{run}-{sha256[:16]}-rows.jsonl"
    if target.exists() or any(folder.glob(f"a*-{run}-rows.jsonl")):
        return
    temporary = folder / f".{uuid.uuid4().hex}.partial"
    try:
        with store.storage.open(name) as content, create_file(temporary, "log-probs") as file:
            for chunk in verified(content, sha256, name):
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(target)
    finally:
        temporary.unlink(missing_ok=True)


def publish(store: ArtifactStore, folders: Collection[Path], run_id: str) -> None:
    """What this run has computed, if anything."""
    for folder in folders:
        try:
            lines = [line for path in sorted(folder.glob(f"a*-{run_id}-rows.jsonl")) for line in _lines(path)]
            if lines:
                content = b"".join(lines)
                sha256 = hashlib.sha256(content).hexdigest()
                store.storage.put(f"{LOG_PROBS}{folder.name}/{run_id}-{sha256}.jsonl", io.BytesIO(content), sha256)
        except (SteerboardError, OSError) as error:
            log.warning("log-probs of %s are not stored: %s", folder.name, error)


def _lines(path: Path) -> list[bytes]:
    """Whole ones: a kill may have torn the last."""
    with path.open("rb") as file:
        return [line for line in file if line.strip() and line.endswith(b"\n")]
