"""The place of llama.cpp: its converter, as it is released with `llama-cpp-python`, and the library built from it."""

from __future__ import annotations

import os
from pathlib import Path

import steerboard
from steerboard.platform.settings import Settings
from steerboard_contracts.errors import EngineMissing

CONVERTER = "llama.cpp"
_CHECKOUT = Path(steerboard.__file__).parents[2]


def find_python(settings: Settings) -> Path | None:
    """The Python that has it: the setting's, or that of `make setup-gguf` in this checkout, if it was built."""
    if settings.gguf_python is not None:
        return settings.gguf_python
    python = _CHECKOUT / ".venv-gguf" / "bin" / "python"
    return python if python.exists() else None


def require_python(settings: Settings) -> Path:
    """Raises `EngineMissing`."""
    python = find_python(settings)
    if python is not None and os.access(python, os.X_OK) and converter_of(python).is_dir():
        return python
    raise EngineMissing(
        f"{python} is no Python of an environment with llama.cpp and its converter"
        if python
        else "llama.cpp and its converter are not installed on this machine",
        hint="Build their environment with `make setup-gguf`, or set STEERBOARD_GGUF_PYTHON to the Python of one.",
    )


def converter_of(python: Path) -> Path:
    """The folder of `convert_hf_to_gguf.py`, which is in the environment of that Python."""
    return python.parents[1] / CONVERTER
