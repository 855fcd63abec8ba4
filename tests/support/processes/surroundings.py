"""What tests start processes with."""

from __future__ import annotations

import os


def surroundings() -> dict[str, str]:
    """Of this process, without what is another one in each test: workers that differ share no stage parent."""
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
