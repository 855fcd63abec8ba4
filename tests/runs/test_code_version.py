"""What a finished run's key is made of: versions of what all runs share, of its kind or method, and of libraries."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from steerboard.runs.reuse import code_version
from steerboard_contracts import run_kinds
from steerboard_contracts.methods import methods, needed_method
from steerboard_contracts.run_kinds import all_kinds, parts_of, stages_of
from steerboard_contracts.specs.run_kind import RunKindSpec, training
from support.source_tree import SourceTree

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "steerboard_contracts": "backend/steerboard_contracts",
    "steerboard_statistics": "backend/steerboard_statistics",
    "steerboard_workers": "workers/steerboard_workers",
}


@pytest.fixture(autouse=True)
def _fresh():
    code_version.code_version.cache_clear()
    yield
    code_version.code_version.cache_clear()


def raised(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    """Kinds of these words with another version."""
    changed = tuple(
        dataclasses.replace(kind, result_version=kind.result_version + 1) if kind.word in words else kind
        for kind in all_kinds()
    )
    monkeypatch.setattr(run_kinds, "all_kinds", lambda: changed)
    monkeypatch.setattr(code_version, "all_kinds", lambda: changed)
    code_version.code_version.cache_clear()


def versions() -> dict[str, str | None]:
    code_version.code_version.cache_clear()
    return {kind.word: code_version.code_version(kind.run, kind.method) for kind in all_kinds()}


@pytest.mark.parametrize(
    ("word", "whose"),
    [("train dpo", {"train dpo"}), ("mix", {"mix"}), ("answer", {"answer", "evaluate"})],
)
def test_a_raised_version_is_of_its_own_runs_and_of_those_that_it_is_a_part_of(
    monkeypatch: pytest.MonkeyPatch, word: str, whose: set[str]
) -> None:
    before = versions()
    raised(monkeypatch, word)
    after = versions()
    assert {kind for kind in before if before[kind] != after[kind]} == whose


def test_a_raised_version_of_everything_is_of_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    before = versions()
    monkeypatch.setattr(code_version, "RESULT_VERSION", 1_000_000)
    after = versions()
    assert all(before[kind] != after[kind] for kind in before)


def test_a_run_that_trains_has_the_version_of_its_method() -> None:
    spec = dataclasses.replace(needed_method("sft"), result_version=7)
    assert training(spec).result_version == 7


def test_all_of_anothers_package_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "their_methods"
    package.mkdir()
    for name in ("__init__", "training", "helpers"):
        (package / f"{name}.py").write_text(f"# {name}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = code_version.source_of(["their_methods"])
    assert code_version.source_of(["their_methods"]) == before
    (package / "helpers.py").write_text("# changed\n")
    assert code_version.source_of(["their_methods"]) != before


def test_versions_tell_methods_apart_and_need_them_installed() -> None:
    keys = [code_version.code_version("train", name) for name in methods()]
    assert len(set(keys)) == len(keys)
    assert None not in keys
    assert code_version.code_version("train", "nobodys") is None


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.word) for kind in all_kinds() if stages_of(kind.run)])
def test_a_stage_reads_its_own_config_and_no_others(kind: RunKindSpec) -> None:
    tree = SourceTree({name: [ROOT / place] for name, place in PACKAGES.items()})
    worker = [kind.training.training.partition(":")[0]] if kind.training else []
    read = tree.closure([*stages_of(kind.run), *worker])
    mine = (kind.run, *parts_of(kind))
    others = {kind.config.__module__ for kind in all_kinds() if kind.run != "train" and kind.run not in mine}
    assert others.isdisjoint(read)
    assert "steerboard_contracts.run_config" not in read
    assert kind.config.__module__ in read or parts_of(kind)
