# ruff: noqa: E501
"""From text to plan: what a recipe implies, and everything that is refused before anything starts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recipe_shelf import Shelf

from steerboard.recipes.catalogue import Catalogue
from steerboard.recipes.errors import InvalidRecipe
from steerboard.recipes.inputs import StageRef
from steerboard.recipes.plan import Plan, PlannedStage, make_plan

# Verbatim from CONTRACTS.md.
CONTRACT = """\
name: offline-rlhf
inputs:
  base: {type: model}                       # registry name, local folder, hub name, or random:tiny-llama (needs a tokenizer trained on the data)
  instructions: {type: dataset, kind: instructions, optional: true}   # absent: prompts with their chosen side
  preferences: {type: dataset, kind: preferences}
  prompts: {type: dataset, kind: prompts, optional: true}             # absent: prompts of the two above
stages:
  sft:       {run: train, method: sft, model: $base, data: $instructions, lr: 5.0e-6, batch: 128}
  reward:    {run: train, method: reward_model, model: sft, data: $preferences, lr: 9.0e-6, batch: 128, epochs: 1}
  generated: {run: generate, model: sft, data: $prompts, decoding: greedy}
  mixture:   {run: mix, parts: [{data: generated, share: 0.333}, {data: $instructions, share: auto}, {data: $preferences, side: both, share: auto}], size: 100000}
  labelled:  {run: score, data: mixture, reward: reward}
  mle:       {run: train, method: mle_filter, model: sft, data: labelled, threshold: 0.0, lr: 5.0e-6}
  rwr:       {run: train, method: rwr, model: sft, data: labelled, beta: 5.0, lr: 5.0e-6}
  dt:        {run: train, method: decision_transformer, model: sft, data: labelled, score_scale: zscore, lr: 5.0e-6}
  report:    {run: evaluate, entrants: [sft, mle, rwr, {model: dt, scores: [-5.0, -2.5, 0.0, 2.5, 5.0]}], rewards: [reward, independent]}
"""

SHIPPED = Path(__file__).parents[2] / "recipes" / "offline-rlhf.yaml"


def stage(plan: Plan, name: str) -> PlannedStage:
    return next(s for s in plan.stages if s.name == name)


def inputs(plan: Plan, name: str) -> dict[str, str]:
    return {
        slot: source.stage if isinstance(source, StageRef) else f"${source.name}"
        for slot, source in stage(plan, name).inputs.items()
    }


def config(plan: Plan, name: str) -> dict[str, Any]:
    return stage(plan, name).config.model_dump(mode="json")


def refused(shelf: Catalogue, text: str, *overrides: str) -> list[str]:
    with pytest.raises(InvalidRecipe) as caught:
        make_plan(text, list(overrides), shelf)
    return [f"{error.location}: {error.message}" for error in caught.value.errors]


def test_the_contract_recipe_plans_verbatim(shelf: Catalogue) -> None:
    plan = make_plan(CONTRACT, ["preferences=hh", "base=random:tiny-llama"], shelf)
    order = [s.name for s in plan.stages]
    assert set(order) == {
        *("base", "instructions", "sft", "reward", "generated", "mixture", "labelled"),
        *("mle", "rwr", "dt", "independent", "report"),
    }
    assert {s.name for s in plan.stages if s.implied} == {"base", "instructions", "independent"}
    for s in plan.stages:
        assert all(order.index(need) < order.index(s.name) for need in s.needs)
    assert inputs(plan, "sft") == {"model": "base", "data": "instructions"}
    assert config(plan, "dt")["lr"] == 5e-6
    assert config(plan, "report")["entrants"][3] == {"scores": [-5.0, -2.5, 0.0, 2.5, 5.0]}


def test_the_shipped_recipe_is_the_contract_one_with_the_papers_batch_everywhere(shelf: Catalogue) -> None:
    overrides = ["preferences=hh", "base=tiny", "instructions=graded", "prompts=questions"]
    shipped, contract = make_plan(SHIPPED.read_text(), overrides, shelf), make_plan(CONTRACT, overrides, shelf)
    assert [(s.name, s.config, s.inputs) for s in shipped.stages] == [
        (s.name, s.config, s.inputs) for s in contract.stages
    ]


def test_an_endpoint_may_generate_in_place_of_a_model(shelf: Catalogue) -> None:
    text = CONTRACT.replace("model: sft, data: $prompts", "endpoint: served, data: $prompts")
    plan = make_plan(text, ["preferences=hh", "base=tiny", "prompts=questions"], shelf)
    assert inputs(plan, "generated") == {"data": "$questions"}
    assert config(plan, "generated")["endpoint"] == "served"


def test_a_registered_base_model_is_used_as_it_is(shelf: Catalogue) -> None:
    plan = make_plan(CONTRACT, ["preferences=hh", "base=tiny"], shelf)
    assert inputs(plan, "sft")["model"] == "$tiny"
    assert "base" not in {s.name for s in plan.stages}


def test_a_random_base_gets_a_stage_whose_tokenizer_sees_every_dataset(shelf: Catalogue) -> None:
    plan = make_plan(CONTRACT, ["preferences=hh", "instructions=graded", "base=random:tiny-llama"], shelf)
    assert inputs(plan, "base") == {"data.0": "$graded", "data.1": "$hh"}
    assert config(plan, "base")["source"] == "random:tiny-llama"


def test_a_hub_base_needs_no_data(shelf: Catalogue) -> None:
    plan = make_plan(CONTRACT, ["preferences=hh", "base=some-org/some.model-7b@main"], shelf)
    assert inputs(plan, "base") == {}
    assert config(plan, "base")["source"] == "some-org/some.model-7b@main"


def test_a_folder_base_is_pinned_by_what_it_holds(shelf: Catalogue, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"1")
    overrides = ["preferences=hh", f"base={tmp_path}"]
    first = config(make_plan(CONTRACT, overrides, shelf), "base")
    assert first["source"] == str(tmp_path)
    assert re.fullmatch("[0-9a-f]{64}", first["fingerprint"])
    assert config(make_plan(CONTRACT, overrides, shelf), "base") == first
    (tmp_path / "model.safetensors").write_bytes(b"2")
    assert config(make_plan(CONTRACT, overrides, shelf), "base")["fingerprint"] != first["fingerprint"]


def test_a_folder_that_is_no_model_is_refused(shelf: Catalogue, tmp_path: Path) -> None:
    faults = refused(shelf, CONTRACT, "preferences=hh", f"base={tmp_path}")
    assert faults == [
        f"stages.base.source (--set base={tmp_path}): `{tmp_path}` has no config.json, so it is not a model folder"
    ]
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    assert "no .safetensors file" in refused(shelf, CONTRACT, "preferences=hh", f"base={tmp_path}")[0]
    assert "there is no folder" in refused(shelf, CONTRACT, "preferences=hh", f"base={tmp_path}/nope")[0]


def test_absent_instructions_are_the_chosen_side_once(shelf: Catalogue) -> None:
    plan = make_plan(CONTRACT, ["preferences=hh", "base=tiny"], shelf)
    assert config(plan, "instructions")["parts"] == [{"share": "auto", "side": "chosen"}]
    assert config(plan, "instructions")["size"] == 1000
    # The mixture's preferences bring the chosen side already.
    assert inputs(plan, "mixture") == {"parts.0": "generated", "parts.1": "$hh"}
    assert any("leaves the part $instructions out" in note for note in plan.notes)


def test_absent_prompts_are_those_of_instructions_and_preferences(shelf: Catalogue) -> None:
    plan = make_plan(CONTRACT, ["preferences=hh", "instructions=graded", "base=tiny"], shelf)
    assert inputs(plan, "prompts") == {"parts.0": "$graded", "parts.1": "$hh"}
    assert config(plan, "prompts")["size"] == 3000
    assert inputs(plan, "generated")["data"] == "prompts"
    assert inputs(plan, "report")["data"] == "prompts"


def test_absent_prompts_and_instructions_are_the_prompts_of_the_preferences(shelf: Catalogue) -> None:
    plan = make_plan(CONTRACT, ["preferences=hh", "base=tiny"], shelf)
    assert inputs(plan, "generated")["data"] == "$hh"
    assert inputs(plan, "report")["data"] == "$hh"


def test_the_independent_reward_model_is_a_twin_on_the_other_half(shelf: Catalogue) -> None:
    plan = make_plan(CONTRACT, ["preferences=hh", "base=tiny", "reward.lr=1e-5"], shelf)
    first, twin = config(plan, "reward"), config(plan, "independent")
    assert (first.pop("half"), twin.pop("half")) == ("a", "b")
    assert first == twin
    assert first["lr"] == 1e-5
    assert inputs(plan, "independent") == inputs(plan, "reward") == {"model": "sft", "data": "$hh"}


def test_without_an_independent_judge_the_reward_model_sees_all_preferences(shelf: Catalogue) -> None:
    plan = make_plan(CONTRACT, ["preferences=hh", "base=tiny", "report.rewards=[reward]"], shelf)
    assert config(plan, "reward")["half"] is None
    assert "independent" not in {s.name for s in plan.stages}


def test_an_evaluation_is_wired_to_what_it_judges(shelf: Catalogue) -> None:
    plan = make_plan(CONTRACT, ["preferences=hh", "base=tiny", "prompts=questions"], shelf)
    wired = inputs(plan, "report")
    assert wired.pop("data") == "$questions"
    assert wired.pop("labelled") == "labelled"
    assert wired.pop("preferences") == "$hh"
    assert wired == {
        "entrants.0": "sft",
        "entrants.1": "mle",
        "entrants.2": "rwr",
        "entrants.3": "dt",
        "rewards.0": "reward",
        "rewards.1": "independent",
    }


def test_overrides_reach_any_field_also_of_implied_stages(shelf: Catalogue) -> None:
    plan = make_plan(
        CONTRACT,
        [
            *("preferences=hh", "base=random:tiny-llama", "dt.lr=1e-4", "stages.sft.epochs=2", "base.hidden=64"),
            *("report.decoding.temperature=0.7", "report.entrants.3.scores=[5, 0]", "mixture.parts.0.share=0.5"),
            *("independent.epochs=3", "rwr.max_weight=null", "name=mine", "sft.pool=large", "sft.reuse=false"),
        ],
        shelf,
    )
    assert config(plan, "dt")["lr"] == 1e-4
    assert config(plan, "sft")["epochs"] == 2
    assert config(plan, "base")["hidden"] == 64
    assert config(plan, "report")["decoding"]["temperature"] == 0.7
    assert config(plan, "report")["entrants"][3]["scores"] == [5.0, 0.0]
    assert config(plan, "mixture")["parts"][0]["share"] == 0.5
    assert config(plan, "independent")["epochs"] == 3
    assert config(plan, "rwr")["max_weight"] is None
    assert plan.name == "mine"
    assert (stage(plan, "sft").pool, stage(plan, "sft").reuse) == ("large", False)


def test_a_later_override_wins(shelf: Catalogue) -> None:
    plan = make_plan(CONTRACT, ["preferences=hh", "base=tiny", "dt.lr=1", "dt.lr=0.5"], shelf)
    assert config(plan, "dt")["lr"] == 0.5


def test_an_input_may_have_a_default_and_be_emptied(shelf: Catalogue) -> None:
    text = CONTRACT.replace("kind: instructions, optional: true", "kind: instructions, optional: true, default: graded")
    assert inputs(make_plan(text, ["preferences=hh", "base=tiny"], shelf), "sft")["data"] == "$graded"
    emptied = make_plan(text, ["preferences=hh", "base=tiny", "instructions="], shelf)
    assert inputs(emptied, "sft")["data"] == "instructions"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("batch: 128}", "bach: 128}"), "stages.sft.bach (line 8): unknown key `bach`; did you mean `batch`?"),
        (("beta: 5.0", "beta: five"), "stages.rwr.beta (line 14): should be a valid number, got 'five'"),
        (("beta: 5.0", "beta: true"), "stages.rwr.beta (line 14): should be a valid number, got true"),
        (("beta: 5.0", 'beta: "5.0"'), "stages.rwr.beta (line 14): should be a valid number, got '5.0'"),
        (("beta: 5.0", "beta: .nan"), "stages.rwr.beta (line 14): is not a finite number, got nan"),
        (("threshold: 0.0", "threshold: .inf"), "stages.mle.threshold (line 13): is not a finite number, got inf"),
        (("method: rwr", "method: rwrr"), "stages.rwr.method (line 14): there is no method `rwrr`; did you mean `rwr`?"),
        (("run: score", "run: scor"), "stages.labelled.run (line 12): there is no run kind `scor`; did you mean `score`?"),
        (("run: mix, ", ""), "stages.mixture (line 11): needs `run`: one of base, train, generate, mix, score, evaluate"),
        (("reward: reward}", "reward: rewrd}"), "stages.labelled.reward (line 12): there is no stage `rewrd`; did you mean `reward`?"),
        (("data: $prompts", "data: prompts"), "stages.generated.data (line 10): there is no stage `prompts`; the input is written `$prompts`"),
        (("data: mixture", "data: $mixture"), "stages.labelled.data (line 12): there is no input `mixture`; the output of the stage is written `mixture`, without `$`"),
        (("reward: reward}", "reward: sft}"), "stages.labelled.reward (line 12): needs a model of role reward; `sft` (train sft) makes a model of role sft"),
        (("model: $base, ", ""), "stages.sft (line 8): needs `model`: a model"),
        (("model: sft, data: $prompts", "model: sft, endpoint: served, data: $prompts"), "stages.generated.endpoint (line 10): an endpoint takes the place of `model`"),
        (("model: sft, data: $prompts", "data: $prompts"), "stages.generated (line 10): needs `model`: a model"),
        (("decoding: greedy", "engine: vlm"), "stages.generated.engine (line 10): should be 'transformers' or 'vllm', got 'vlm'"),
        (("data: mixture, reward", "data: report, reward"), "stages.labelled.data (line 12): needs a dataset of kind instructions or labelled; `report` (evaluate) makes a report, which no stage takes in"),
        (("{model: dt, scores", "{modl: dt, scores"), "stages.report.entrants.3 (line 16): needs `model`: the model that answers"),
        (("share: 0.333", "share: lots"), "stages.mixture.parts.0.share (line 11): should be a valid number or should be 'auto', got 'lots'"),
        (("name: offline-rlhf", "nam: offline-rlhf"), "nam (line 1): unknown key `nam`; did you mean `name`?"),
        (("base: {type: model}", "base: {type: modl}"), "inputs.base.type (line 3): needs `type: model` or `type: dataset`"),
        (("base: {type: model}", "base: {type: model, kind: x}"), "inputs.base.kind (line 3): unknown key `kind`"),
        (("kind: prompts", "kind: promts"), "inputs.prompts.kind (line 6): should be 'instructions', 'preferences', 'unpaired', 'prompts' or 'labelled', got 'promts'"),
        (("  sft:  ", "  s.ft:"), "stages.s.ft (line 8): the name must start with a letter and hold only letters, digits, `_` and `-`, at most 64"),
        (("data: mixture", "data: 7"), "stages.labelled.data (line 12): must be the name of a stage, or `$` and the name of an input; got 7"),
        (("decoding: greedy", "decoding: greedi"), "stages.generated.decoding (line 10): should be a valid dictionary or instance of Decoding, got 'greedi'"),
    ],
)  # fmt: skip
def test_a_mistake_is_refused_with_its_line(shelf: Catalogue, change: tuple[str, str], fault: str) -> None:
    assert change[0] in CONTRACT
    found = refused(shelf, CONTRACT.replace(*change, 1), "preferences=hh", "base=tiny")
    assert any(one.startswith(fault) for one in found), found


@pytest.mark.parametrize(
    ("override", "fault"),
    [
        ("preferences=hhh", "inputs.preferences (--set preferences=hhh): there is no dataset `hhh` in the project; did you mean `hh`?"),
        ("preferences=graded", "inputs.preferences (--set preferences=graded): needs a dataset of kind preferences; `graded` is of kind instructions"),
        ("base=tyny", "inputs.base (--set base=tyny): there is no model `tyny` in the project, nor is it a folder, a hub name (org/name) or random:tiny-llama; did you mean `tiny`?"),
        ("base=judge", "stages.sft.model (line 8): needs a model of role base or policy or sft; `judge` is a model of role reward"),
        ("base=random:huge", "stages.base.source (--set base=random:huge): there is no base model `random:huge`; known: random:tiny-llama"),
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
        ("report.rewards=[independent]", "stages.report.rewards.0 (--set report.rewards=[independent]): `independent` is the twin of a reward model"),
        ("name=a b", "name (--set name=a b): must start with a letter"),
    ],
)  # fmt: skip
def test_a_wrong_override_is_refused_and_named(shelf: Catalogue, override: str, fault: str) -> None:
    found = refused(shelf, CONTRACT, "preferences=hh", "base=tiny", override)
    assert any(one.startswith(fault) for one in found), found


def test_all_faults_are_reported_at_once_and_only_once(shelf: Catalogue) -> None:
    found = refused(shelf, CONTRACT.replace("lr: 9.0e-6", "lr: 9.0"), "preferences=hhh", "mle.data=mixture")
    assert [one.split(":")[0] for one in found] == [
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
        "stages.sft.data (line 6): the optional input `extra` is not given, and nothing stands in for it"
    ]


@pytest.mark.parametrize("text", ["name: x\nstages: {}\n", "name: x\n", "name: x\nstages: [a]\n", "stages: 1\n"])
def test_a_recipe_needs_stages(shelf: Catalogue, text: str) -> None:
    assert any("needs `stages`" in fault for fault in refused(shelf, text))


@given(data=st.data())
def test_random_recipes_are_ordered_or_their_cycle_is_named(data: st.DataObject) -> None:
    """Mixtures over each other: any graph can be written down, and it plans exactly when it has no cycle."""
    size = data.draw(st.integers(1, 7))
    names = [f"m{i}" for i in range(size)]
    needs = {n: data.draw(st.lists(st.sampled_from(names), max_size=3, unique=True)) for n in names}
    lines = ["name: random", "inputs: {d: {type: dataset, kind: instructions, default: graded}}", "stages:"]
    lines += [f"  {n}: {{run: mix, parts: [$d{''.join(f', {m}' for m in needs[n])}]}}" for n in names]
    if any(n in _reach(n, needs) for n in names):
        faults = refused(Shelf(), "\n".join(lines))
        assert all("wait for each other" in fault for fault in faults)
        return
    order = [s.name for s in make_plan("\n".join(lines), [], Shelf()).stages]
    assert sorted(order) == sorted(names)
    assert all(order.index(m) < order.index(n) for n in names for m in needs[n])


def _reach(name: str, needs: dict[str, list[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(needs[name])
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting.extend(needs[one])
    return found
