"""The plan of a text: what a recipe implies, and how it is overridden."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recipe_plans import CONTRACT, refused, stage
from recipe_shelf import Shelf

from steerboard.recipes.inputs import StageRef
from steerboard.recipes.planning.plan import Plan, make_plan
from steerboard.runs.launch.lookup import Catalogue
from steerboard_contracts.files.local_folders import LocalFolders

SHIPPED = Path(__file__).parents[2] / "recipes" / "offline-rlhf.yaml"


def inputs(plan: Plan, name: str) -> dict[str, str]:
    return {
        slot: source.stage if isinstance(source, StageRef) else f"${source.name}"
        for slot, source in stage(plan, name).inputs.items()
    }


def config(plan: Plan, name: str) -> dict[str, Any]:
    return stage(plan, name).config.model_dump(mode="json")


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
    assert config(plan, "report")["entrants"][3] == {
        "scores": [-5.0, -2.5, 0.0, 2.5, 5.0],
        "guidance": 1.0,
        "best_of": None,
        "samples": 1,
    }


def test_the_shipped_recipe_is_the_contract_one_with_the_papers_batch_everywhere(shelf: Catalogue) -> None:
    overrides = ["preferences=hh", "base=tiny", "instructions=graded", "prompts=questions"]
    shipped, contract = make_plan(SHIPPED.read_text(), overrides, shelf), make_plan(CONTRACT, overrides, shelf)
    assert [(s.name, s.config, s.inputs) for s in shipped.stages] == [
        (s.name, s.config, s.inputs) for s in contract.stages
    ]


def test_an_endpoint_may_generate_in_place_of_a_model(shelf: Catalogue) -> None:
    text = CONTRACT.replace("model: sft, data: $prompts", "endpoint: gpt, data: $prompts")
    plan = make_plan(text, ["preferences=hh", "base=tiny", "prompts=questions"], shelf)
    assert inputs(plan, "generated") == {"data": "$questions"}
    assert config(plan, "generated")["endpoint"] == "gpt"


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


def test_a_folder_base_is_pinned_by_what_it_holds(shelf: Shelf, tmp_path: Path) -> None:
    shelf.folders = LocalFolders(roots=(tmp_path,))
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"1")
    overrides = ["preferences=hh", f"base={tmp_path}"]
    first = config(make_plan(CONTRACT, overrides, shelf), "base")
    assert first["source"] == str(tmp_path)
    assert re.fullmatch("[0-9a-f]{64}", first["fingerprint"])
    assert config(make_plan(CONTRACT, overrides, shelf), "base") == first
    (tmp_path / "model.safetensors").write_bytes(b"2")
    assert config(make_plan(CONTRACT, overrides, shelf), "base")["fingerprint"] != first["fingerprint"]


def test_a_name_is_never_taken_for_a_folder_that_happens_to_be_there(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "org" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    plan = make_plan(CONTRACT, ["preferences=hh", "base=org/model"], shelf)
    assert config(plan, "base")["fingerprint"] is None
    assert "there is no model `org`" in refused(shelf, CONTRACT, "preferences=hh", "base=org")[0]


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


def test_absent_answers_with_thumbs_are_both_sides_of_the_preferences(shelf: Catalogue) -> None:
    text = CONTRACT.replace("stages:\n", "  thumbs: {type: dataset, kind: unpaired, optional: true}\nstages:\n")
    text = text.replace("  report: ", "  kto: {run: train, method: kto, model: sft, data: $thumbs}\n  report: ")
    plan = make_plan(text, ["preferences=hh", "base=tiny", "prompts=questions"], shelf)
    assert inputs(plan, "kto")["data"] == "$hh"
    assert any(note.startswith("$thumbs is not given: both sides of $preferences") for note in plan.notes)
    (fault,) = refused(shelf, text.replace("method: kto", "method: sft"), "preferences=hh", "base=tiny")
    assert "data" in fault


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


def test_an_independent_judge_alone_is_the_twin_of_the_reward_model_that_is_trained(shelf: Catalogue) -> None:
    plan = make_plan(CONTRACT, ["preferences=hh", "base=tiny", "report.rewards=[independent]"], shelf)
    assert (config(plan, "reward")["half"], config(plan, "independent")["half"]) == ("a", "b")


def test_there_is_no_independent_judge_where_no_reward_model_is_trained(shelf: Catalogue) -> None:
    text = """
name: x
inputs: {preferences: {type: dataset, kind: preferences}}
stages:
  start: {run: base, source: "random:tiny-llama", data: $preferences}
  report: {run: evaluate, entrants: [start], rewards: [independent], data: $preferences}
"""
    assert refused(shelf, text, "preferences=hh")[0] == (
        "stages.report.rewards.0 (line 6): `independent` is the twin of a reward model that this recipe trains, and it "
        "trains none"
    )


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
            *("report.decoding.temperature=0.7", "mixture.parts.0.share=0.5"),
            "report.entrants.3.scores=[5, {helpfulness: 4}, 'a:1,b:2']",
            *("independent.epochs=3", "rwr.max_weight=null", "name=mine", "sft.pool=large", "sft.reuse=false"),
        ],
        shelf,
    )
    assert config(plan, "dt")["lr"] == 1e-4
    assert config(plan, "sft")["epochs"] == 2
    assert config(plan, "base")["hidden"] == 64
    assert config(plan, "report")["decoding"]["temperature"] == 0.7
    assert config(plan, "report")["entrants"][3]["scores"] == [5.0, "helpfulness:4", "a:1,b:2"]
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
    reached: set[str] = set()
    waiting = list(needs[name])
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached.add(node)
            waiting.extend(needs[node])
    return reached


SELECTION = """\
name: selection
inputs:
  policy: {type: model}
  judge: {type: model}
  questions: {type: dataset, kind: prompts}
stages:
  answers: {run: generate, model: $policy, data: $questions, decoding: {temperature: 1.0, n: 4}}
  scored: {run: score, data: answers, reward: $judge}
  kept: {run: select, data: scored, keep: best}
  tuned: {run: train, method: raft, model: $policy, data: kept}
"""
SELECTED = ("policy=tuned", "judge=judge", "questions=questions")


def test_what_a_selection_makes_depends_on_what_it_keeps(shelf: Shelf) -> None:
    assert list(stage(make_plan(SELECTION, list(SELECTED), shelf), "kept").inputs) == ["data.0"]
    for keep, method, fits in (
        ("best", "raft", True),
        ("best", "reward_model", False),
        ("best_and_worst", "reward_model", True),
        ("all", "rwr", True),
        ("all", "raft", False),
    ):
        overrides = [*SELECTED, f"kept.keep={keep}", f"tuned.method={method}"]
        if fits:
            make_plan(SELECTION, overrides, shelf)
        else:
            faults = refused(shelf, SELECTION, *overrides)
            assert any("`kept` (select) makes a dataset of kind" in line for line in faults)


def test_weights_of_a_selection_are_one_for_each_dataset(shelf: Shelf) -> None:
    two = SELECTION.replace("data: scored, keep", "data: [scored, scored], weights: [1.0, 2.0, 3.0], keep")
    assert refused(shelf, two, *SELECTED) == ["stages.kept.weights (line 9): has 3 items for 2 of `data`"]
    make_plan(two.replace(", 3.0", ""), list(SELECTED), shelf)


def test_several_rewards_of_the_same_answers_are_combined_for_training(shelf: Shelf) -> None:
    scored = "  scored: {run: score, data: answers, reward: $judge}\n"
    kept = "  kept: {run: select, data: scored, keep: best}\n"
    two = (
        scored + scored.replace("scored", "again") + "  kept: {run: combine, data: [scored, again], weights: [1, -2]}\n"
    )
    recipe = SELECTION.replace(scored + kept, two).replace("method: raft", "method: decision_transformer")
    combined = stage(make_plan(recipe, list(SELECTED), shelf), "kept")
    assert list(combined.inputs) == ["data.0", "data.1"]
    assert combined.config.model_dump()["weights"] == [1.0, -2.0]
    wrong = refused(shelf, recipe.replace("[1, -2]", "[1]"), *SELECTED)
    assert wrong == ["stages.kept.weights (line 10): has 1 item for 2 of `data`"]
    pairs = refused(shelf, recipe.replace("decision_transformer", "dpo"), *SELECTED)
    assert any("`kept` (combine) makes a dataset of kind" in line for line in pairs)


def test_a_mixture_makes_pairs_where_it_says_so(shelf: Shelf) -> None:
    recipe = """\
name: mixed
inputs: {policy: {type: model}, pairs: {type: dataset, kind: preferences}, others: {type: dataset, kind: preferences}}
stages:
  mixture: {run: mix, makes: preferences, parts: [{data: $pairs, share: 0.7}, {data: $others}], size: 100}
  tuned: {run: train, method: dpo, model: $policy, data: mixture}
"""
    given = ["policy=tuned", "pairs=hh", "others=hh"]
    assert stage(make_plan(recipe, given, shelf), "tuned").needs == ["mixture"]
    taken_apart = refused(shelf, recipe.replace("makes: preferences, ", ""), *given)
    assert any("`mixture` (mix) makes a dataset of kind instructions" in line for line in taken_apart)
    written = recipe.replace(
        "others: {type: dataset, kind: preferences}", "others: {type: dataset, kind: instructions}"
    )
    (no_pairs,) = refused(shelf, written, "policy=tuned", "pairs=hh", "others=graded")
    assert "parts.1" in no_pairs
    assert "kind instructions" in no_pairs


def test_the_recipe_raft_fits_and_learns_the_selected_answers(shelf: Shelf) -> None:
    made = make_plan(SHIPPED.with_name("raft.yaml").read_text(), ["base=tiny", "preferences=hh"], shelf)
    assert stage(made, "raft").needs == ["sft", "best"]
    assert stage(made, "report").inputs["labelled"].text == "scored"  # type: ignore[union-attr]
