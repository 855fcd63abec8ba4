"""A run kind is known only to its description: nothing else chooses by its name, or by the class of its config."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from steerboard_contracts.run_kinds import all_kinds
from steerboard_contracts.training import OnlineConfig, TrainingConfig

ROOT = Path(__file__).resolve().parents[2]
KINDS = frozenset(kind.run for kind in all_kinds())
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
_NAMES = "|".join(sorted(KINDS))
# What holds a run's kind: `run.kind`, `one["kind"]`, `fields.get("run")`, `config.run`, `kinds`, `RunKind`, ...
# A kind of something else is one of a word before it: `dataset.kind` has other values.
_OF_A_RUN = re.compile(r"(?i)(?<![a-z])(run_?)?kinds?(?![a-z])|(?<![a-z])run(?![a-z])|runkind|run_of")
_QUOTED = rf"""["'`](?:{_NAMES})["'`]"""
_NAMED = re.compile(rf"{_QUOTED}|\b(?:{_NAMES}):")
_SQL = re.compile(rf"(?i)\bkind\s*(?:=|<>|!=|(?:not\s+)?in\s*\()\s*'(?:{_NAMES})'")
_TYPESCRIPT = [
    re.compile(rf"(?:\bkinds?|\brun)\b[\])?!]*\s*[!=]==?\s*{_QUOTED}"),
    re.compile(rf"{_QUOTED}\s*[!=]==?\s*[\w.?!\[\]]*(?:\bkind|\brun)\b"),
    re.compile(rf"\[[^\]]*{_QUOTED}[^\]]*\](?:\s*as const)?\)?\.(?:includes|indexOf)\([\w.?!]*(?:\bkind|\brun)\b"),
    re.compile(rf"\bcase\s+{_QUOTED}\s*:(?=[\s\S])"),
    re.compile(rf"\bKINDS?\b[^=\n]*=\s*(?:new Set\()?[\[{{][^\]}}]*(?:{_QUOTED}|\b(?:{_NAMES}):)"),
    re.compile(rf"\bkind\s*[:=]\s*{{?\s*{_QUOTED}"),
]


def kinds_in(node: ast.AST) -> bool:
    """Whether it is a kind's name, or a collection with one."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value in KINDS
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(kinds_in(one) for one in node.elts)
    if isinstance(node, ast.Dict):
        return any(kinds_in(key) for key in node.keys if key is not None)
    return isinstance(node, ast.Call) and any(kinds_in(one) for one in node.args)


def is_kind(node: ast.AST) -> bool:
    """Whether a run's kind may be in it, by its words."""
    return not kinds_in(node) and _OF_A_RUN.search(ast.unparse(node)) is not None


def constants_of(tree: ast.AST) -> set[str]:
    """Names in a module that stand for kinds: `_KEEP_ROWS = ("generate", "score")`."""
    found = set()
    for node in ast.walk(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name) and value and kinds_in(value):
            found.add(target.id)
    return found


def named_kinds(source: str) -> Iterator[int]:
    """Lines of a Python module that compare a run's kind with a name, or look something up by it."""
    tree = ast.parse(source)
    constants = constants_of(tree)

    def named(node: ast.AST) -> bool:
        return kinds_in(node) or (isinstance(node, ast.Name) and node.id in constants)

    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                sides = [left, *others]
                found = any(map(named, sides)) and any(is_kind(one) for one in sides if not named(one))
            case ast.Match(subject=subject, cases=cases):
                values = [
                    one.value for case in cases for one in ast.walk(case.pattern) if isinstance(one, ast.MatchValue)
                ]
                found = is_kind(subject) and any(map(named, values))
            case ast.Subscript(value=value, slice=key):
                found = named(value) and is_kind(key)
            case ast.Call(func=ast.Attribute(value=value, attr="get"), args=args):
                found = named(value) and any(map(is_kind, args))
            case ast.Call(func=ast.Attribute(value=value, attr="in_" | "not_in"), args=args):
                found = is_kind(value) and any(map(named, args))
            case ast.Constant(value=str() as text):
                found = _SQL.search(text) is not None
            case ast.AnnAssign(annotation=annotation, value=ast.AST() as value):
                found = "RunKind" in ast.unparse(annotation) and kinds_in(value)
            case ast.Dict(keys=keys, values=values):
                found = any(_constant(key) == "run" and named(value) for key, value in zip(keys, values, strict=True))
            case ast.keyword(arg=("kind" | "kinds" | "run_kind"), value=value):
                found = named(value)
            case _:
                found = False
        if found:
            yield node.lineno


def _constant(node: ast.AST | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


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


def typescript_lines(source: str) -> Iterator[int]:
    for pattern in _TYPESCRIPT:
        for match in pattern.finditer(source):
            yield source.count("\n", 0, match.start()) + 1


def test_nothing_outside_its_description_chooses_by_the_name_of_a_run_kind() -> None:
    found = []
    for place in ("backend", "workers", "frontend/src"):
        for path in sorted((ROOT / place).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if name.startswith(DESCRIPTIONS) or name.endswith("schema.d.ts") or ".test." in name:
                continue
            source = path.read_text() if path.suffix in (".py", ".ts", ".tsx") else ""
            if _NAMED.search(source):  # much faster than to parse all
                lines = named_kinds(source) if path.suffix == ".py" else typescript_lines(source)
                found += [f"{name}:{line}: {source.splitlines()[line - 1].strip()}" for line in lines]
    assert not found, "\n".join(found)


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


@pytest.mark.parametrize(
    "source",
    [
        'if run.kind == "train": pass',
        'if "evaluate" != kind.run: pass',
        'busy = [one for one in plan if one["kind"] == "evaluate"]',
        'if fields.get("run") in ("generate", "score"): pass',
        'rows = select(Run).where(Run.kind.in_(["answer"]))',
        '_KEPT = frozenset({"score", "select"})\nif upstream.kind in _KEPT: pass',
        'STAGES = {"reward": "reward_responses"}\nmodule = STAGES.get(run.kind)',
        'label = {"judge": "Verdicts"}[run.kind]',
        'MODULES: dict[RunKind, str] = {"mix": "steerboard_workers.stages.mix"}',
        'stages["base"] = {"run": "base", "source": "random:tiny-llama"}',
        "text(\"SELECT id FROM runs WHERE kind = 'train'\")",
        'match config.run:\n    case "base" | "mix":\n        pass',
    ],
)
def test_a_choice_by_name_is_found_in_python(source: str) -> None:
    assert list(named_kinds(source))


@pytest.mark.parametrize(
    "source",
    [
        'const pausable = run.kind === "train";',
        'const others = kinds.filter((one) => one.kind !== "train");',
        'const parts = "evaluate" === run.kind ? "Parts" : "Shards";',
        'if (["generate", "score"].includes(run.kind)) return null;',
        'const KINDS = [\n  "base",\n  "train",\n];',
        '<Link to="/p/$project/launch/$kind" params={{ project, kind: "base" }} />',
        'switch (run.kind) {\n  case "mix":\n    return null;\n}',
    ],
)
def test_a_choice_by_name_is_found_in_typescript(source: str) -> None:
    assert list(typescript_lines(source))


@pytest.mark.parametrize(
    "source",
    [
        'if model.role == "base": pass',
        'if dataset.origin.get("split") == "train": pass',
        'if "reward" in row: pass',
        'if dataset.kind == "labelled": pass',
        'if phase == "generate": pass',
    ],
)
def test_the_same_words_for_other_things_are_left_alone(source: str) -> None:
    assert not list(named_kinds(source))
