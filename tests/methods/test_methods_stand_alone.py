"""A method is known only to its two files: no page and no other module knows its name."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from steerboard_contracts.methods import methods
from steerboard_contracts.specs.method import MethodSpec

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("backend", "workers", "frontend/src")
METHOD_FOLDERS = ("backend/steerboard_contracts/methods/", "workers/steerboard_workers/alignment/methods/")
SOURCES = {".py", ".ts", ".tsx"}
# Words of the field, too: `sft` is the role of a model, and the others are what judges answers.
JUDGING = ("reward_model", "process_reward_model", "preference_model")
ROLE = "backend/steerboard_contracts/models.py"
# A column of other tools' files.
COLUMN = '"kto_tag"'


@cache
def sources() -> dict[str, tuple[str, str]]:
    """Text by name of the file, and in small letters."""
    by_file: dict[str, tuple[str, str]] = {}
    for place in PLACES:
        for path in sorted((ROOT / place).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            generated = name.endswith("schema.d.ts") or ".test." in name
            if path.suffix in SOURCES and not generated and not name.startswith(METHOD_FOLDERS):
                text = path.read_text()
                by_file[name] = (text, text.lower())
    return by_file


def names_of(spec: MethodSpec) -> tuple[list[str], set[str]]:
    """Patterns that only this method's name, class or title matches, and what every match has, in small letters."""
    patterns = [rf"""["'`]{spec.name}["'`]""", rf"\b{spec.config.__name__}\b"]
    spellings: set[str] = set()
    if spec.name not in ("sft", *JUDGING):
        spellings = {spec.name, spec.name.replace("_", "-"), spec.name.replace("_", " "), spec.label.lower()}
        spellings |= {spec.title.lower(), spec.name.replace("_", "")}
        patterns += [rf"(?i:\b{re.escape(spelling)})" for spelling in sorted(spellings)]
    return patterns, spellings | {spec.name.lower(), spec.config.__name__.lower()}


@pytest.mark.parametrize("name", methods())
def test_nothing_outside_its_two_files_names_a_method(name: str) -> None:
    named, spellings = names_of(methods()[name])
    patterns = [re.compile(pattern) for pattern in named]
    violations = []
    for file, (text, small) in sources().items():
        if not any(spelling in small for spelling in spellings):  # much faster than the patterns
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if not any(pattern.search(line.replace(COLUMN, "")) for pattern in patterns):
                continue
            if (name == "sft" and file == ROLE) or (name == "reward_model" and "lineage" in line):
                continue
            violations.append(f"{file}:{number}: {line.strip()}")
    assert not violations, "\n".join(violations)


@pytest.mark.parametrize("name", methods())
def test_a_method_is_two_files_of_its_name(name: str) -> None:
    assert all((ROOT / folder / f"{name}.py").is_file() for folder in METHOD_FOLDERS)
