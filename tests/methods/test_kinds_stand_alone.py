"""Nothing but a run kind's description and its stage chooses by the class of its config."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from steerboard_contracts.run_kinds import all_kinds
from steerboard_contracts.training import OnlineConfig, TrainingConfig

ROOT = Path(__file__).resolve().parents[2]
DESCRIPTIONS = "backend/steerboard_contracts/run_kinds/"
# Methods may share a config between them and these two, which are families of all.
FAMILIES = (TrainingConfig, OnlineConfig)
CONFIGS = frozenset(
    one.__name__
    for kind in all_kinds()
    for one in kind.config.__mro__
    if one is kind.config or (issubclass(one, TrainingConfig) and one not in FAMILIES)
)
# A kind's own stage names which config it gets.
STAGES = {f"workers/steerboard_workers/stages/{kind.stage}.py": kind.config.__name__ for kind in all_kinds()}


def classes_in(node: ast.AST) -> Iterator[str]:
    """Configs of kinds that it names: `GenerateConfig | ScoreConfig`, `(generate.GenerateConfig,)`."""
    for one in ast.walk(node):
        name = one.id if isinstance(one, ast.Name) else one.attr if isinstance(one, ast.Attribute) else ""
        if name in CONFIGS:
            yield name


def chosen_classes(source: str) -> Iterator[tuple[int, str]]:
    """Lines of a Python module that ask whether something is of a kind's config class, with its name."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, asked]):
                places = [asked]
            case ast.MatchClass(cls=asked):
                places = [asked]
            case ast.Compare(left=left, comparators=others):
                places = [left, *others]
            case ast.Dict(keys=keys):
                places = [key for key in keys if key is not None]
            case _:
                places = []
        yield from ((node.lineno, name) for place in places for name in classes_in(place))


def test_nothing_outside_its_description_chooses_by_the_class_of_a_kinds_config() -> None:
    found = []
    for place in ("backend", "workers"):
        for path in sorted((ROOT / place).rglob("*.py")):
            name, source = path.relative_to(ROOT).as_posix(), path.read_text()
            if name.startswith(DESCRIPTIONS) or not any(config in source for config in CONFIGS):
                continue
            for line, config in chosen_classes(source):
                if STAGES.get(name) != config:
                    found.append(f"{name}:{line}: {source.splitlines()[line - 1].strip()}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "if isinstance(config, GenerateConfig): pass",
        "assert isinstance(config, ScoreConfig | BenchmarkConfig)",
        "small = isinstance(config, (TrainingConfig, mix.MixConfig))",
        "online = [one for one in specs if issubclass(one.config, RewardedOnlineConfig)]",
        "if type(config) is BaseModelConfig: pass",
        "if type(config) in (AnswerConfig, JudgeConfig): pass",
        "match config:\n    case SelectConfig(keep=keep):\n        pass",
        "match config:\n    case TrainingConfig() | configs.CombineConfig():\n        pass",
        "WORK = {EvaluateConfig: answers, AcademicConfig: items}",
    ],
)
def test_a_choice_by_class_is_found(source: str) -> None:
    assert list(chosen_classes(source))


@pytest.mark.parametrize(
    "source",
    [
        "if isinstance(config, TrainingConfig): pass",
        "match config:\n    case OnlineConfig(engine=engine):\n        pass",
        "def work(config: GenerateConfig) -> None: pass",
        "config = AnswerConfig(evaluation=one, entrant=other)",
        "known: dict[str, type[MixConfig]] = {}",
    ],
)
def test_families_and_configs_in_use_are_no_choice(source: str) -> None:
    assert not list(chosen_classes(source))
