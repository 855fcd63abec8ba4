"""What a finished run's key is made of: a change to code that a run does not use leaves it as it was."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Literal

import pytest

from steerboard.runs.reuse import code_version
from steerboard.runs.reuse.code_version import SourceTree, source_version
from steerboard_contracts.configs import configs
from steerboard_contracts.methods import methods, needed_method
from steerboard_contracts.run_kinds import all_kinds, parts_of, stages_of
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.training import OnlineConfig

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "steerboard_contracts": "backend/steerboard_contracts",
    "steerboard_statistics": "backend/steerboard_statistics",
    "steerboard_workers": "workers/steerboard_workers",
}
GENERATING = {"generate", "academic", "answer"}
KINDS = ("base", "generate", "mix", "score", "benchmark", "academic", "answer", "reward", "judge")
# `judge` has no stage: nothing is known of what it reads.
ONLINE = {name for name, spec in methods().items() if issubclass(spec.config, OnlineConfig)}


class Copy:
    """The source as it is installed, in a folder where it may be changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name, place in PACKAGES.items():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / place, folder / name, ignore=ignore)
        self._before = self.versions()

    def versions(self) -> dict[str, str]:
        tree = SourceTree({name: [self._folder / name] for name in PACKAGES})
        found = {kind: source_version(tree, kind, None) for kind in KINDS}
        return found | {name: source_version(tree, "train", spec) for name, spec in methods().items()}

    def changed(self, *names: str) -> set[str]:
        """Whose versions are others while these files have a line more."""
        texts = {path: path.read_text() if path.exists() else None for path in map(self._folder.joinpath, names)}
        try:
            for path, text in texts.items():
                path.write_text((text or "") + "\n# changed\n")
            after = self.versions()
        finally:
            for path, text in texts.items():
                path.write_text(text) if text is not None else path.unlink()
        return {name for name, version in after.items() if version != self._before[name]}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("source"))


# One of each role, and all of them in `make test-all`: to find what every run reads takes half a second.
_ROLES = {spec.role: name for name, spec in methods().items()}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in _ROLES.values() else pytest.mark.long) for name in methods()]
)
def test_a_change_to_a_methods_files_is_of_its_own_runs_alone(copy: Copy, name: str) -> None:
    assert copy.changed(
        f"steerboard_contracts/methods/{name}.py", f"steerboard_workers/alignment/methods/{name}.py"
    ) == {
        name,
        "judge",
    }


@pytest.mark.parametrize("folder", ["steerboard_contracts/methods", "steerboard_workers/alignment/methods"])
def test_a_change_to_either_file_of_a_method_counts(copy: Copy, folder: str) -> None:
    assert copy.changed(f"{folder}/sft.py") == {"sft", "judge"}


def test_a_new_method_voids_nothing(copy: Copy) -> None:
    new = ("steerboard_contracts/methods/another.py", "steerboard_workers/alignment/methods/another.py")
    assert copy.changed(*new) == {"judge"}


def test_what_a_page_shows_of_a_run_kind_is_no_part_of_its_result(copy: Copy) -> None:
    assert copy.changed("steerboard_contracts/run_kinds/generate.py") == {"judge"}


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.word) for kind in all_kinds() if stages_of(kind.run)])
def test_a_stage_reads_its_own_config_and_no_others(kind: RunKindSpec) -> None:
    tree = SourceTree({name: [ROOT / place] for name, place in PACKAGES.items()})
    worker = [kind.training.training.partition(":")[0]] if kind.training else []
    read = tree.closure([*stages_of(kind.run), *worker])
    others = {config.__module__ for run, config in configs().items() if run not in (kind.run, *parts_of(kind))}
    assert others.isdisjoint(read)
    assert "steerboard_contracts.run_config" not in read
    assert not any(module.startswith("steerboard_contracts.run_kinds") for module in read)
    assert kind.config.__module__ in read or parts_of(kind)


def test_each_kind_has_its_config_in_a_module_of_its_own() -> None:
    assert {kind.run: kind.config for kind in all_kinds() if not kind.trains} == configs()
    assert len({config.__module__ for config in configs().values()}) == len(configs())


@pytest.mark.parametrize(
    ("file", "whose"),
    [
        ("steerboard_workers/stages/mix.py", {"mix"}),
        ("steerboard_contracts/configs/academic.py", {"academic"}),
        ("steerboard_contracts/configs/generate.py", {"generate"}),
        ("steerboard_contracts/run_config.py", set()),
        ("steerboard_workers/stages/training/loop.py", set(methods())),
        ("steerboard_workers/alignment/training_method.py", set(methods())),
        ("steerboard_workers/engines/sampling.py", {*GENERATING, "score", "reward", "benchmark", *ONLINE}),
        ("steerboard_workers/stages/runtime.py", {*KINDS, *methods()}),
        ("steerboard_workers/engines/live/process.py", ONLINE),
        ("steerboard_workers/stages/roles/cluster.py", ONLINE),
        ("steerboard_workers/supervisor/lease.py", set()),
    ],
)
def test_a_change_is_of_the_runs_that_read_it(copy: Copy, file: str, whose: set[str]) -> None:
    assert copy.changed(file) == whose | {"judge"}


def test_all_of_anothers_package_counts_and_it_alone(tmp_path: Path) -> None:
    package = tmp_path / "theirs"
    package.mkdir()
    for name in ("__init__", "training", "helpers"):
        (package / f"{name}.py").write_text(f"# {name}\n")
    places = {name: [ROOT / place] for name, place in PACKAGES.items()}
    tree = SourceTree({**places, "theirs": [package]})
    spec = dataclasses.replace(needed_method("sft"), training="theirs.training:Training", package="theirs")
    before, own = source_version(tree, "train", spec, ["theirs"]), source_version(tree, "train", needed_method("sft"))
    (package / "helpers.py").write_text("# changed\n")
    assert source_version(tree, "train", spec, ["theirs"]) != before
    assert source_version(tree, "train", needed_method("sft")) == own


class Online(OnlineConfig):
    method: Literal["online"] = "online"


def test_what_samples_counts_for_a_method_that_samples(tmp_path: Path) -> None:
    for name, place in PACKAGES.items():
        shutil.copytree(ROOT / place, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    tree = SourceTree({name: [tmp_path / name] for name in PACKAGES})
    spec = dataclasses.replace(needed_method("sft"), name="online", config=Online)
    before = source_version(tree, "train", spec)
    with (tmp_path / "steerboard_workers/engines/sampling.py").open("a") as file:
        file.write("# changed\n")
    assert source_version(tree, "train", spec) != before


def test_what_answers_probe_prompts_counts_for_runs_that_have_some(tmp_path: Path) -> None:
    for name, place in PACKAGES.items():
        shutil.copytree(ROOT / place, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    tree = SourceTree({name: [tmp_path / name] for name in PACKAGES})
    spec = needed_method("sft")
    before = [source_version(tree, "train", spec, probes=probes) for probes in (False, True)]
    for changed in ("stages/training/watching/probing.py", "stages/training/sampling/live_policy.py"):
        with (tmp_path / "steerboard_workers" / changed).open("a") as file:
            file.write("# changed\n")
        after = [source_version(tree, "train", spec, probes=probes) for probes in (False, True)]
        assert (after[0] == before[0], after[1] == before[1]) == (True, False)
        before = after


def test_a_kind_whose_stage_is_not_known_reads_everything(copy: Copy) -> None:
    assert copy.changed("steerboard_workers/supervisor/lease.py") == {"judge"}


def test_versions_tell_methods_apart_and_need_them_installed() -> None:
    keys = [code_version.code_version("train", name) for name in methods()]
    assert len(set(keys)) == len(keys)
    assert None not in keys
    assert code_version.code_version("train", "nobodys") is None


def test_an_evaluation_counts_what_its_answers_and_rewards_count(tmp_path: Path) -> None:
    for name, place in PACKAGES.items():
        shutil.copytree(ROOT / place, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    tree = SourceTree({name: [tmp_path / name] for name in PACKAGES})
    stages = tmp_path / "steerboard_workers/stages"

    def changed(path: Path) -> bool:
        before, text = source_version(tree, "evaluate", None), path.read_text()
        path.write_text(text + "\n# changed\n")
        after = source_version(tree, "evaluate", None)
        path.write_text(text)
        return after != before

    assert changed(stages / "answer.py")
    assert changed(stages / "reward_responses.py")
    assert not changed(stages / "mix.py")
    assert not any(changed(tmp_path / f"steerboard_contracts/methods/{name}.py") for name in methods())
