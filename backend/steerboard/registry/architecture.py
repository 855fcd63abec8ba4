"""The architecture that a model's own config.json describes, read without its weights."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy.orm import Session

from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.service import manifest_of
from steerboard.registry.tables import Model
from steerboard_contracts.errors import SteerboardError

_CONFIG = "config.json"
_LARGEST = 1 << 20


def architecture_of(session: Session, store: ArtifactStore, model: Model) -> dict[str, Any] | None:
    """The model's config.json; None where it cannot be read: what is derived from it is not worth an error."""
    files = manifest_of(session, model).files
    file = next((f for f in files if f["path"] == _CONFIG and f["size"] <= _LARGEST), None)
    if file is None:
        return None
    try:
        config: Any = json.loads(b"".join(store.read(file["sha256"])))
    except (SteerboardError, OSError, ValueError):
        return None
    return config if isinstance(config, dict) else None
