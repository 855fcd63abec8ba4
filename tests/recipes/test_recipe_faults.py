# ruff: noqa: E501
"""Everything that is refused before anything starts, with its line."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from recipe_plans import CONTRACT, refused
from recipe_shelf import Shelf

from steerboard.recipes.errors import InvalidRecipe
from steerboard.recipes.planning.plan import make_plan
from steerboard.recipes.schemas import RecipeOut
from steerboard.runs.launch.lookup import Catalogue, KnownModel
from steerboard_contracts.files.local_folders import LocalFolders


def test_a_folder_that_is_no_model_is_refused(shelf: Shelf, tmp_path: Path) -> None:
    shelf.folders = LocalFolders(roots=(tmp_path,))
    faults = refused(shelf, CONTRACT, "preferences=hh", f"base={tmp_path}")
    assert faults == [
        f"inputs.base (--set base={tmp_path}): `{tmp_path}` has no config.json, so it is not a model folder"
    ]
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    assert "no .safetensors file" in refused(shelf, CONTRACT, "preferences=hh", f"base={tmp_path}")[0]
    assert "there is no folder" in refused(shelf, CONTRACT, "preferences=hh", f"base={tmp_path}/nope")[0]


def test_a_recipe_whose_only_fault_is_a_folder_out_of_reach_has_its_code(shelf: Shelf, tmp_path: Path) -> None:
    with pytest.raises(InvalidRecipe) as caught:
        make_plan(CONTRACT, ["preferences=hh", f"base={tmp_path}"], shelf)
    assert caught.value.code == "folder_not_allowed"
    with pytest.raises(InvalidRecipe) as caught:
        make_plan(CONTRACT, ["preferences=hh", f"base={tmp_path}", "sft.lr=fast"], shelf)
    assert caught.value.code == "invalid_recipe"


@pytest.mark.parametrize(
    ("change", "setting"),
    [("strategy: zero3", "strategy zero3"), ("lora: {quantise: nf4}", "lora.quantise nf4"), ("epochs: 2", None)],
)
def test_an_adapter_is_refused_where_only_a_whole_model_works(shelf: Shelf, change: str, setting: str | None) -> None:
    shelf.models["lora"] = KnownModel(uuid.uuid4(), "lora", "sft", adapter=True)
    text = CONTRACT.replace("data: $instructions, lr: 5.0e-6", f"data: $instructions, {change}", 1)
    base = next(given for given in RecipeOut.of(text).inputs if given.name == "base")
    assert base.whole == (setting is not None)
    if setting is None:
        make_plan(text, ["preferences=hh", "base=lora"], shelf)
    else:
        fault = f"stages.sft.model (line 8): `lora` is an adapter over its base, which {setting} does not take"
        assert refused(shelf, text, "preferences=hh", "base=lora")[0].startswith(fault)
        make_plan(text, ["preferences=hh", "base=tiny"], shelf)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("batch: 128}", "bach: 128}"), "stages.sft.bach (line 8): unknown key `bach`; did you mean `batch`?"),
        (("beta: 5.0", "beta: five"), "stages.rwr.beta (line 14): should be a valid number, got 'five'"),
        (("beta: 5.0", "beta: true"), "stages.rwr.beta (line 14): should be a valid number, got true"),
        (("beta: 5.0", 'beta: "5.0"'), "stages.rwr.beta (line 14): should be a valid number, got '5.0'"),
        (("beta: 5.0", "beta: .nan"), "stages.rwr.beta (line 14): is not a finite number, got nan"),
        (("threshold: 0.0", "threshold: .inf"), "stages.mle.threshold (line 13): is not a finite number, got inf"),
        (("method: rwr", "method: rwrr"), "stages.rwr.method (line 14): unknown method `rwrr`; did you mean `rwr`?"),
        (("run: score", "run: scor"), "stages.labelled.run (line 12): unknown run kind `scor`; did you mean `score`?"),
        (("run: mix, ", ""), "stages.mixture (line 11): needs `run`: one of base, train, generate, mix, score, grade, combine, select, evaluate"),
        (("reward: reward}", "reward: rewrd}"), "stages.labelled.reward (line 12): unknown stage `rewrd`; did you mean `reward`?"),
        (("data: $prompts", "data: prompts"), "stages.generated.data (line 10): unknown stage `prompts`; the input is written `$prompts`"),
        (("data: mixture", "data: $mixture"), "stages.labelled.data (line 12): unknown input `mixture`; the output of the stage is written `mixture`, without `$`"),
        (("reward: reward}", "reward: sft}"), "stages.labelled.reward (line 12): needs a model of role reward; `sft` (train sft) makes a model of role sft"),
        (("model: $base, ", ""), "stages.sft (line 8): needs `model`: a model"),
        (("model: sft, data: $prompts", "model: sft, endpoint: served, data: $prompts"), "stages.generated.endpoint (line 10): an endpoint takes the place of `model`"),
        (("model: sft, data: $prompts", "data: $prompts"), "stages.generated (line 10): needs `model`: a model"),
        (("decoding: greedy", "engine: vlm"), "stages.generated.engine (line 10): should be 'transformers' or 'vllm', got 'vlm'"),
        (("data: mixture, reward", "data: report, reward"), "stages.labelled.data (line 12): needs a dataset of kind instructions or labelled; `report` (evaluate) makes a report, which no stage takes as input"),
        (("[sft, mle", "[{model: sft, best_of: 4}, mle"), "stages.report.entrants.0 (line 16): needs both `best_of` and the `reward` model that chooses, or neither"),
        (("[sft, mle", "[{model: sft, reward: reward}, mle"), "stages.report.entrants.0 (line 16): needs both `best_of` and the `reward` model that chooses, or neither"),
        (("rewards: [reward, independent]", "best_of: [reward], rewards: [reward, independent]"), "stages.report.best_of (line 16): belongs to an entrant: `{model: sft, best_of: 8, reward: reward}`"),
        (("[sft, mle", "[{model: sft, best_of: 4, reward: reward, samples: 4}, mle"), "stages.report.entrants.0 (line 16): `best_of` chooses one answer, and cannot be combined with several `samples`"),
        (("[sft, mle", "[{model: sft, samples: 4}, mle"), "stages.report (line 16): several `samples` need a `decoding.temperature` above 0, or they are all the same"),
        (("rewards: [reward, independent]", "decoding: {n: 4}, rewards: [reward, independent]"), "stages.report.decoding.n (line 16): has no effect on an evaluation: give an entrant `samples`, or `best_of` and a `reward`"),
        (("{model: dt, scores", "{modl: dt, scores"), "stages.report.entrants.3 (line 16): needs `model`: the model that answers"),
        (("share: 0.333", "share: lots"), "stages.mixture.parts.0.share (line 11): should be a valid number or should be 'auto', got 'lots'"),
        (("name: offline-rlhf", "nam: offline-rlhf"), "nam (line 1): unknown key `nam`; did you mean `name`?"),
        (("base: {type: model}", "base: {type: modl}"), "inputs.base.type (line 3): needs `type: model` or `type: dataset`"),
        (("base: {type: model}", "base: {type: model, kind: x}"), "inputs.base.kind (line 3): unknown key `kind`"),
        (("kind: prompts", "kind: promts"), "inputs.prompts.kind (line 6): should be 'instructions', 'preferences', 'unpaired', 'prompts', 'labelled' or 'stepwise', got 'promts'"),
        (("  sft:  ", "  s.ft:"), "stages.s.ft (line 8): the name must start with a letter and hold only letters, digits, `_` and `-`, at most 64"),
        (("data: mixture", "data: 7"), "stages.labelled.data (line 12): must be the name of a stage, or `$` and the name of an input; got 7"),
        (("decoding: greedy", "decoding: greedi"), "stages.generated.decoding (line 10): should be a valid dictionary or instance of Decoding, got 'greedi'"),
    ],
)  # fmt: skip
def test_a_mistake_is_refused_with_its_line(shelf: Catalogue, change: tuple[str, str], fault: str) -> None:
    assert change[0] in CONTRACT
    faults = refused(shelf, CONTRACT.replace(*change, 1), "preferences=hh", "base=tiny")
    assert any(line.startswith(fault) for line in faults), faults


@pytest.mark.parametrize(
    ("override", "fault"),
    [
        ("preferences=hhh", "inputs.preferences (--set preferences=hhh): there is no dataset `hhh` in the project; did you mean `hh`?"),
        ("preferences=graded", "inputs.preferences (--set preferences=graded): needs a dataset of kind preferences; `graded` is of kind instructions"),
        ("base=tyny", "inputs.base (--set base=tyny): there is no model `tyny` in the project, nor is it a folder (./name), a hub name (org/name) or random:tiny-llama; did you mean `tiny`?"),
        ("base=judge", "stages.sft.model (line 8): needs a model of role base or policy or sft; `judge` is a model of role reward"),
        ("base=random:huge", "inputs.base (--set base=random:huge): there is no model `random:huge` in the project, nor is it a folder (./name), a hub name"),
        ("preferences=", "inputs.preferences (--set preferences=): needs a value: --set preferences=DATASET"),
        ("sft.lr=fast", "stages.sft.lr (--set sft.lr=fast): should be a valid number, got 'fast'"),
        ("sfft.lr=1", "--set sfft.lr=1: the recipe has no input or stage `sfft`; did you mean `sft`?"),
        ("sft=1", "--set sft=1: `sft` is a stage: set one of its fields, sft.FIELD"),
        ("sft.lr", "--set sft.lr: is not of the form name=value or stage.field=value"),
        ("sft..lr=1", "--set sft..lr=1: is not of the form name=value or stage.field=value"),
        ("sft.lr=[1", "--set sft.lr=[1: the value is not valid YAML:"),
        ("report.entrants.9=dt", "--set report.entrants.9=dt: stages.report.entrants is a list, and `9` is not an item of it; it has 4 items"),
        ("sft.model=dt", "stages.sft.model (--set sft.model=dt): the stages wait for each other: sft -> dt -> sft"),
        ("sft.model=sft", "stages.sft.model (--set sft.model=sft): the stages wait for each other: sft -> sft"),
        ("name=a b", "name (--set name=a b): must start with a letter"),
    ],
)  # fmt: skip
def test_a_wrong_override_is_refused_and_named(shelf: Catalogue, override: str, fault: str) -> None:
    faults = refused(shelf, CONTRACT, "preferences=hh", "base=tiny", override)
    assert any(line.startswith(fault) for line in faults), faults


def test_all_faults_are_reported_at_once_and_only_once(shelf: Catalogue) -> None:
    faults = refused(shelf, CONTRACT.replace("lr: 9.0e-6", "lr: 9.0"), "preferences=hhh", "mle.data=mixture")
    assert [line.split(":")[0] for line in faults] == [
        "inputs.base (line 3)",
        "stages.reward.lr (line 9)",
        "inputs.preferences (--set preferences=hhh)",
        "stages.mle.data (--set mle.data=mixture)",
    ]


def test_a_missing_input_is_refused(shelf: Catalogue) -> None:
    assert refused(shelf, CONTRACT, "base=tiny") == [
        "inputs.preferences (line 5): needs a value: --set preferences=DATASET"
    ]


def test_an_absent_optional_input_without_a_stand_in_is_refused_where_it_is_used(shelf: Catalogue) -> None:
    text = """\
name: x
inputs:
  base: {type: model}
  extra: {type: dataset, kind: instructions, optional: true}
stages:
  sft: {run: train, method: sft, model: $base, data: $extra}
"""
    assert refused(shelf, text, "base=tiny") == [
        "stages.sft.data (line 6): the optional input `extra` is not given, and nothing replaces it"
    ]


@pytest.mark.parametrize("text", ["name: x\nstages: {}\n", "name: x\n", "name: x\nstages: [a]\n", "stages: 1\n"])
def test_a_recipe_needs_stages(shelf: Catalogue, text: str) -> None:
    assert any("needs `stages`" in fault for fault in refused(shelf, text))


def test_a_probe_of_a_model_that_writes_no_answers_is_refused_with_its_line(shelf: Shelf) -> None:
    text = CONTRACT.replace("method: reward_model,", "method: reward_model, probe: {},")
    assert text != CONTRACT
    (fault,) = refused(shelf, text, "preferences=hh", "base=tiny")
    assert fault.startswith("stages.reward")
    assert "a reward model writes no answers" in fault
