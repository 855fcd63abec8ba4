"""The place of vLLM: its pins collide with ours, so it has an environment of its own, and what uses it runs there."""

from __future__ import annotations

import os
from pathlib import Path

import steerboard
from steerboard.platform.processes.environments import our_packages
from steerboard.platform.settings import Settings
from steerboard_contracts.errors import EngineMissing

_CHECKOUT = Path(steerboard.__file__).parents[2]


def find_python(settings: Settings) -> Path | None:
    """The Python that has vLLM: the setting's, or that of `make setup-vllm` in this checkout, if it was built."""
    if settings.vllm_python is not None:
        return settings.vllm_python
    python = _CHECKOUT / ".venv-vllm" / "bin" / "python"
    return python if python.exists() else None


def require_python(settings: Settings) -> Path:
    """Raises `EngineMissing`."""
    python = find_python(settings)
    if python is not None and os.access(python, os.X_OK):
        return python
    raise EngineMissing(
        f"{python} is not a working Python interpreter" if python else "vLLM is not installed on this machine",
        hint="Build its environment with `make setup-vllm`, or set STEERBOARD_VLLM_PYTHON to a Python that has it.",
    )


def variables(python: Path, home: Path) -> dict[str, str]:
    """The variables of a stage's environment: where our packages are, and the tools next to that Python (ninja compiles
    kernels)."""
    return {
        "PYTHONPATH": str(our_packages(home / "vllm-source")),
        "PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        # vLLM's processes rename themselves; without this, that would overwrite the mark by which a lost one is found.
        "SPT_NOENV": "1",
    }
