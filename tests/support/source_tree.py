"""Which modules a module imports, also in functions and by names in strings."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

_OURS = ("steerboard_contracts", "steerboard_statistics", "steerboard_workers")
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
        """Returns None where one of them is not installed."""
        roots: dict[str, list[Path]] = {}
        for name in names:
            spec = importlib.util.find_spec(name)
            if spec is None:
                return None
            places = spec.submodule_search_locations or ([spec.origin] if spec.origin else [])
            roots[name] = [Path(place) for place in places]
        return cls(roots)

    def closure(self, modules: Iterable[str]) -> dict[str, Path]:
        """These modules, the packages they are in, and what they import: in functions, and by names in strings, too."""
        paths: dict[str, Path] = {}
        waiting = list(modules)
        while waiting:
            module = waiting.pop()
            if module in paths:
                continue
            parent = module.rpartition(".")[0]
            path = self.path(module)
            if parent and parent not in paths:
                waiting.append(parent)
            if path is None:
                continue
            paths[module] = path
            package = module if path.name == "__init__.py" else parent
            waiting += _imports(path.read_bytes(), package)
        return paths

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


@cache
def _imports(source: bytes, package: str) -> tuple[str, ...]:
    """Names of modules that a file imports, and some other names: `from a import b` may mean either."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                around = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*around, *([node.module] if node.module else [])])
            modules.add(base)
            modules |= {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAMED.fullmatch(node.value):
            modules.add(node.value.partition(":")[0])
    return tuple(sorted(modules))
