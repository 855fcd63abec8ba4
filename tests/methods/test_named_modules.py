"""Modules that the source names in strings exist, such as what the log-prob cache hashes: renaming one is noticed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from steerboard_contracts.run_kinds import stage_modules
from support.source_tree import SourceTree

ROOT = Path(__file__).resolve().parents[2]
PLACES = {
    "steerboard_contracts": "backend/steerboard_contracts",
    "steerboard_figures": "backend/steerboard_figures",
    "steerboard_files": "backend/steerboard_files",
    "steerboard_statistics": "backend/steerboard_statistics",
    "steerboard_workers": "workers/steerboard_workers",
}
FOLDERS = ["backend/steerboard", *PLACES.values(), "benchmarks", "scripts", "tests"]
TREE = SourceTree({name: [ROOT / place] for name, place in PLACES.items()})
NAME = rf"(?:{'|'.join(PLACES)})(?:\.\w+)+(?::\w+)?"
LOG_PROB_CACHE = "workers/steerboard_workers/stages/training/frozen/log_prob_cache.py"


def named(text: str) -> Iterator[str]:
    """Names that are a whole string, or in backquotes inside of one."""
    yield from re.findall(rf"`({NAME})", text)
    if re.fullmatch(NAME, text):
        yield text


def strings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def exists(name: str) -> bool:
    """A module, or something that is defined in one."""
    module, _, attribute = name.partition(":")
    if TREE.path(module) is not None and not attribute:
        return True
    if not attribute:
        module, _, attribute = module.rpartition(".")
    path = TREE.path(module)
    return path is not None and re.search(rf"\b{attribute}\b", path.read_text()) is not None


@pytest.mark.parametrize("place", FOLDERS)
def test_modules_named_in_strings_exist(place: str) -> None:
    paths = [path for path in (ROOT / place).rglob("*.py") if path != Path(__file__)]
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in paths
        for text in strings(path)
        for name in named(text)
        if not exists(name)
    }
    assert missing == set()


@pytest.mark.parametrize("place", ["docs", "pyproject.toml"])
def test_modules_named_in_docs_and_in_the_import_rules_exist(place: str) -> None:
    paths = [ROOT / place] if (ROOT / place).is_file() else [*(ROOT / place).rglob("*.md"), ROOT / "README.md"]
    missing = {
        name for path in paths for name in re.findall(rf"[`\"]({NAME})[`\"]", path.read_text()) if not exists(name)
    }
    assert missing == set()


def test_what_the_caches_hash_and_the_stages_exist() -> None:
    listed = {name for text in strings(ROOT / LOG_PROB_CACHE) for name in named(text)}
    assert "steerboard_workers.stages.training.passes" in listed
    assert [name for name in stage_modules().values() if not exists(name)] == []
