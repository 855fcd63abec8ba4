"""What tests start processes with."""

from __future__ import annotations

import os

# Another one in each test, or put there by an import, of accelerate and torch, at whatever moment that comes.
PASSING = frozenset({"PYTEST_CURRENT_TEST", "PYTORCH_NVML_BASED_CUDA_CHECK", "TORCHINDUCTOR_CACHE_DIR"})


def surroundings() -> dict[str, str]:
    """The environment of this process, without what passes: workers that differ share no stage parent."""
    return {name: value for name, value in os.environ.items() if name not in PASSING}
