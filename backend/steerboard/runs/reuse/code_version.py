"""Which code decides a run's result: the source that its stage imports, its config's, its method's
files, and the libraries.

A change elsewhere, such as another method, leaves what finished runs made as good as new.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from steerboard_contracts.methods import method_of
from steerboard_contracts.run_kinds import any_kind_of, stages_of
from steerboard_contracts.specs.method import MethodSpec

_OURS = ("steerboard_contracts", "steerboard_statistics", "steerboard_workers")
_STAGES = "steerboard_workers.stages"
# Training modules for methods that sample from their own weights alone.
_SAMPLING = f"{_STAGES}.training.sampling.live_policy"
# Training modules for online methods alone, and for no probe: engines in other processes, and roles on devices of their
# own.
_ENGINES = (f"{_STAGES}.training.sampling.vllm_sampler", f"{_STAGES}.roles.apart")
# The training module for runs that answer probe prompts alone.
_PROBING = f"{_STAGES}.training.watching.probing"
_LIBRARIES = ("torch", "transformers", "tokenizers", "accelerate", "deepspeed", "peft", "numpy")
# What is imported by its name: `steerboard_workers.alignment.methods.sft:Sft`.
_NAMED = re.compile(rf"(?:{'|'.join(_OURS)})(?:\.\w+)+(?::\w+)?")


class SourceTree:
    """Python packages by name, each with the folders (or the one file) that it consists of."""

    def __init__(self, packages: Mapping[str, Iterable[Path]]) -> None:
        self._packages = {name: tuple(paths) for name, paths in packages.items()}
        # The same few hundred modules are asked for at every import of one.
        self._paths: dict[str, Path | None] = {}

    @classmethod
    def installed(cls, *names: str) -> SourceTree | None:
        """None where one of them is not installed."""
        found: dict[str, list[Path]] = {}
        for name in names:
            spec = importlib.util.find_spec(name)
            if spec is None:
                return None
            places = spec.submodule_search_locations or ([spec.origin] if spec.origin else [])
            found[name] = [Path(place) for place in places]
        return cls(found)

    def digest(self, modules: Iterable[str], whole: Iterable[str] = (), without: Iterable[str] = ()) -> str:
        """Hash of these modules' source and of all that they import in these packages, and of `whole` packages.
        Imports of modules `without` are not followed."""
        paths = self.closure([*modules, *(module for name in whole for module in self._modules_of(name))], without)
        digest = hashlib.sha256()
        for module, path in sorted(paths.items()):
            digest.update(f"{module}\0".encode() + path.read_bytes() + b"\0")
        return digest.hexdigest()

    def closure(self, modules: Iterable[str], without: Iterable[str] = ()) -> dict[str, Path]:
        """These modules, the packages they are in, and what they import: in functions, and by names in strings, too."""
        found: dict[str, Path] = {}
        waiting, left_out = list(modules), set(without)
        while waiting:
            module = waiting.pop()
            if module in found:
                continue
            parent = module.rpartition(".")[0]
            path = self.path(module)
            if parent and parent not in found:
                waiting.append(parent)
            if path is None or module in left_out:
                continue
            found[module] = path
            package = module if path.name == "__init__.py" else parent
            waiting += _imports(path.read_bytes(), package)
        return found

    def path(self, module: str) -> Path | None:
        if module not in self._paths:
            self._paths[module] = self._find(module)
        return self._paths[module]

    def _find(self, module: str) -> Path | None:
        top, *rest = module.split(".")
        for place in self._packages.get(top, ()):
            if place.is_file():
                return None if rest else place
            base = place.joinpath(*rest)
            for path in (base / "__init__.py", base.with_name(f"{base.name}.py")):
                if path.is_file() and (rest or path.name == "__init__.py"):
                    return path
        return None

    def _modules_of(self, package: str) -> Iterator[str]:
        for place in self._packages[package]:
            if place.is_file():
                yield package
                continue
            for path in sorted(place.rglob("*.py")):
                parts = (package, *path.relative_to(place).with_suffix("").parts)
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def _imports(source: bytes, package: str) -> tuple[str, ...]:
    """Names of modules that a file imports, and some other names: `from a import b` may mean either."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                around = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*around, *([node.module] if node.module else [])])
            found.add(base)
            found |= {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAMED.fullmatch(node.value):
            found.add(node.value.partition(":")[0])
    return tuple(sorted(found))


@cache
def code_version(kind: str, method: str | None = None, *, probes: bool = False) -> str | None:
    """`probes`: of a run that answers probe prompts. None where the stages, their libraries or the method are not
    installed."""
    spec = method_of(method)
    if method is not None and spec is None:
        return None
    theirs = () if spec is None or spec.package is None else packages_of(spec)
    tree = SourceTree.installed(*_OURS, *theirs)
    if tree is None:
        return None
    digest = hashlib.sha256(source_version(tree, kind, spec, theirs, probes=probes).encode())
    for library in _LIBRARIES:
        try:
            digest.update(f"{library}=={importlib.metadata.version(library)}\0".encode())
        except importlib.metadata.PackageNotFoundError:
            return None
    if spec is not None and spec.package is not None:
        digest.update(f"{spec.package}=={spec.version}\0".encode())
    return digest.hexdigest()


def source_version(
    tree: SourceTree, kind: str, spec: MethodSpec | None, theirs: Iterable[str] = (), *, probes: bool = False
) -> str:
    """`theirs`: packages that brought the method, of which everything counts."""
    modules = stages_of(kind)
    if not modules or any(tree.path(stage) is None for stage in modules):
        # Nothing is known of what such a run reads.
        return tree.digest([], whole=[*_OURS, *theirs])
    described = any_kind_of(kind, spec.name if spec else None)
    if described is not None:
        modules.append(described.config.__module__)
    if spec is not None:
        modules += [spec.config.__module__, spec.training.partition(":")[0]]
    online = spec is not None and spec.online
    without = [
        *([] if probes else [_PROBING]),
        *([] if probes or online else [_SAMPLING]),
        *([] if online else _ENGINES),
    ]
    return tree.digest(modules, whole=theirs, without=without)


def packages_of(spec: MethodSpec) -> tuple[str, ...]:
    """The packages of the two halves of an external method."""
    tops = (spec.config.__module__.partition(".")[0], spec.training.partition(":")[0].partition(".")[0])
    return tuple(sorted(set(tops) - set(_OURS)))
