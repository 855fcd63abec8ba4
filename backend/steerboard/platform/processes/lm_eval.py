"""The place of lm-evaluation-harness: academic runs have an environment, and so a process, of their own."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import steerboard
from steerboard.platform.processes.environments import our_packages
from steerboard.platform.settings import Settings
from steerboard_contracts.errors import EngineMissing

_CHECKOUT = Path(steerboard.__file__).parents[2]


def find_python(settings: Settings) -> Path | None:
    """The Python that has it: the setting's, that of `make setup-benchmarks` in this checkout, or this one, with
    `steerboard[benchmarks]`."""
    if settings.benchmarks_python is not None:
        return settings.benchmarks_python
    python = _CHECKOUT / ".venv-lm-eval" / "bin" / "python"
    if python.exists():
        return python
    return Path(sys.executable) if importlib.util.find_spec("lm_eval") else None


def require_python(settings: Settings) -> Path:
    """Raises `EngineMissing`."""
    python = find_python(settings)
    if python is not None and os.access(python, os.X_OK):
        return python
    raise EngineMissing(
        f"{python} is not a working Python interpreter"
        if python
        else "lm-evaluation-harness is not installed on this machine",
        hint="Build its environment with `make setup-benchmarks`, or set STEERBOARD_BENCHMARKS_PYTHON to a Python that "
        "has `steerboard[benchmarks]`.",
    )


def variables(home: Path) -> dict[str, str]:
    """The variables of a stage's environment: where our packages are."""
    return {"PYTHONPATH": str(our_packages(home / "lm-eval-source"))}
