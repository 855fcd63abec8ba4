"""`steerboard gc` on log-probs in the artifact store: runs compute again what they do not find."""

from __future__ import annotations

import datetime as dt

from steerboard.platform.storage.artifacts import LOG_PROBS, ArtifactStore


def clear_log_probs(store: ArtifactStore, *, age: dt.timedelta, dry_run: bool = False) -> int:
    """Remove files older than `age`. Returns their bytes."""
    before = dt.datetime.now(dt.UTC) - age
    old = [file for file in store.storage.files(LOG_PROBS) if file.modified < before]
    if old and not dry_run:
        store.storage.remove([file.name for file in old])
    return sum(file.size for file in old)
