"""Published data of benchmarks, which only some machines have."""

from __future__ import annotations

from pathlib import Path

import pytest

PUBLISHED = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def published() -> Path:
    if not PUBLISHED.is_dir():
        pytest.skip(f"the published benchmark data is not at {PUBLISHED}")
    return PUBLISHED
