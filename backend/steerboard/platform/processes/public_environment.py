"""The environment for processes that run what users have brought: this one's, without what opens anything."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

# Neither credentials nor addresses of the platform: of its servers, its store and its collector.
# (Celery passes the worker's log to its children by `_MP_FORK_`.)
_PRIVATE_PREFIXES = ("STEERBOARD_", "PG", "REDIS", "CELERY", "_MP_FORK_", "AWS_", "FSSPEC_", "OTEL_")
_PRIVATE = {"DATABASE_URL", "SSH_AUTH_SOCK"}
# Nor what looks like a key to anything else.
_SECRET = re.compile(r"(^|_)(TOKEN|KEY|SECRET|PASSWORD|PASSPHRASE|CREDENTIAL)S?(_|$)", re.IGNORECASE)


def public_environment(of: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables by name."""
    return {
        name: value
        for name, value in of.items()
        if not name.startswith(_PRIVATE_PREFIXES) and name not in _PRIVATE and not _SECRET.search(name)
    }
