"""Which code decides a run's result: versions that its authors raise, and the libraries.

Refactoring leaves what finished runs made as good as new; `steerboard_contracts.result_version` has the rules.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from steerboard_contracts.methods import method_of
from steerboard_contracts.result_version import RESULT_VERSION
from steerboard_contracts.run_kinds import all_kinds, any_kind_of, parts_of
from steerboard_contracts.specs.method import MethodSpec

_OURS = ("steerboard_contracts", "steerboard_statistics", "steerboard_workers")
_LIBRARIES = ("torch", "transformers", "tokenizers", "accelerate", "deepspeed", "peft", "numpy")


@cache
def code_version(kind: str, method: str | None = None) -> str | None:
    """Returns None where the kind, the method or a library is not installed."""
    spec, described = method_of(method), any_kind_of(kind, method)
    if described is None:
        return None
    parts = [kind for kind in all_kinds() if kind.run in parts_of(described)]
    versions = [f"{kind.key}=={kind.result_version}" for kind in (described, *parts)]
    digest = hashlib.sha256("\0".join([f"all=={RESULT_VERSION}", *versions]).encode())
    for library in _LIBRARIES:
        try:
            digest.update(f"{library}=={importlib.metadata.version(library)}\0".encode())
        except importlib.metadata.PackageNotFoundError:
            return None
    if spec is not None and spec.package is not None:
        digest.update(f"{spec.package}=={spec.version}\0".encode() + source_of(packages_of(spec)))
    return digest.hexdigest()


def source_of(packages: Iterable[str]) -> bytes:
    """Hash of all Python files of packages that brought a method: their authors raise no version of ours."""
    digest = hashlib.sha256()
    for name in packages:
        spec = importlib.util.find_spec(name)
        places = [] if spec is None else spec.submodule_search_locations or [spec.origin or ""]
        for place in map(Path, places):
            for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
                digest.update(f"{name} {path.relative_to(place)}\0".encode() + path.read_bytes() + b"\0")
    return digest.digest()


def packages_of(spec: MethodSpec) -> tuple[str, ...]:
    """The packages of the two halves of an external method."""
    tops = (spec.config.__module__.partition(".")[0], spec.training.partition(":")[0].partition(".")[0])
    return tuple(sorted(set(tops) - set(_OURS)))
