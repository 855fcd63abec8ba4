"""Rounds of a recipe are written out as stages: wired to each other, each with its own part of the prompts."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipe_plans import refused, stage
from recipe_shelf import Shelf

from steerboard.recipes.planning.plan import Plan, make_plan
from steerboard.recipes.schemas import RecipeOut

RECIPE = """\
name: rounds
inputs:
  policy: {type: model}
  judge: {type: model}
  questions: {type: dataset, kind: prompts}
rounds: 3
round:
  previous: sft
  stages:
    answers: {run: generate, model: previous, data: $questions, decoding: {temperature: 1.0, n: 4}}
    scored: {run: score, data: answers, reward: $judge}
    best: {run: select, data: [scored]}
    tuned: {run: train, method: raft, model: previous, data: best, lr: 1.0e-6}
stages:
  sft: {run: train, method: sft, model: $policy, data: mixed}
  mixed: {run: mix, parts: [{data: first, share: auto}]}
  first: {run: generate, model: $policy, data: $questions}
  all: {run: mix, parts: [{data: best, share: 0.2}, first]}
  last: {run: train, method: raft, model: tuned, data: all}
  report: {run: evaluate, entrants: [sft, {model: tuned}, last], rewards: [$judge]}
"""
INPUTS = ("policy=tuned", "judge=judge", "questions=questions")


def plan(shelf: Shelf, *overrides: str, text: str = RECIPE) -> Plan:
    return make_plan(text, [*INPUTS, *overrides], shelf)


def inputs(made: Plan, name: str) -> dict[str, str]:
    return {slot: getattr(source, "text", None) or source.name for slot, source in stage(made, name).inputs.items()}


def test_every_round_starts_from_what_the_round_before_made(shelf: Shelf) -> None:
    made = plan(shelf)
    assert inputs(made, "answers-1") == {"model": "sft", "data": "questions"}
    assert inputs(made, "scored-2") == {"data": "answers-2", "reward": "judge"}
    assert inputs(made, "best-2") == {"data.0": "scored-2"}
    assert inputs(made, "tuned-1") == {"model": "sft", "data": "best-1"}
    assert inputs(made, "answers-3") == {"model": "tuned-2", "data": "questions"}
    assert inputs(made, "tuned-3") == {"model": "tuned-2", "data": "best-3"}
    names = [planned.name for planned in made.stages]
    assert names.index("tuned-1") < names.index("answers-2") < names.index("report")
    assert not any(name in names for name in ("answers", "tuned", "previous"))


def test_outside_a_stage_is_that_of_the_last_round_and_in_a_list_those_of_all(shelf: Shelf) -> None:
    made = plan(shelf)
    assert inputs(made, "last") == {"model": "tuned-3", "data": "all"}
    entrants = [inputs(made, "report")[f"entrants.{i}"] for i in range(5)]
    assert entrants == ["sft", "tuned-1", "tuned-2", "tuned-3", "last"]
    assert inputs(made, "all") == {"parts.0": "best-1", "parts.1": "best-2", "parts.2": "best-3", "parts.3": "first"}


def test_each_round_has_its_own_part_of_the_prompts(shelf: Shelf) -> None:
    made = plan(shelf)
    portions = [stage(made, f"answers-{i}").config.portion for i in (1, 2, 3)]
    assert [(portion.number, portion.of) for portion in portions if portion] == [(1, 3), (2, 3), (3, 3)]
    assert stage(made, "first").config.portion is None
    only = plan(shelf, "rounds=1")
    assert stage(only, "answers-1").config.portion is None


def test_overrides_change_the_number_of_rounds_one_round_or_all(shelf: Shelf) -> None:
    made = plan(shelf, "rounds=2", "tuned.lr=2e-6", "tuned-2.lr=3e-6", "answers.decoding.n=8")
    assert [planned.name for planned in made.stages if planned.name.startswith("tuned")] == ["tuned-1", "tuned-2"]
    assert [stage(made, f"tuned-{i}").config.lr for i in (1, 2)] == [2e-6, 3e-6]
    assert [stage(made, f"answers-{i}").config.decoding.n for i in (1, 2)] == [8, 8]
    assert inputs(made, "last")["model"] == "tuned-2"
    assert "rounds=2" in made.overrides
    wired = plan(shelf, "answers.model=sft", "answers-3.model=previous", "tuned.model=previous")
    assert [inputs(wired, f"answers-{i}")["model"] for i in (1, 2, 3)] == ["sft", "sft", "tuned-2"]
    assert [inputs(wired, f"tuned-{i}")["model"] for i in (1, 2, 3)] == ["sft", "tuned-1", "tuned-2"]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("rounds: 3", "rounds: many"), "rounds (line 6): `rounds` must be a whole number from 1 to 20, got 'many'"),
        (("rounds: 3", "rounds: 21"), "rounds (line 6): `rounds` must be a whole number from 1 to 20, got 21"),
        (("  previous: sft\n", ""), "round (line 7): needs `previous`"),
        (
            ("  previous: sft\n", "  previus: sft\n"),
            "round.previus (line 8): unknown key `previus`; did you mean `previous`?",
        ),
        (
            ("  first:", "  best-2:"),
            "round.stages.best (line 12): there is also a stage `best-2` outside",
        ),
        (("reward: $judge", "reward: $jugde"), "stages.scored-1.reward (line 11): unknown input `jugde`"),
        (("lr: 1.0e-6", "lr: fast"), "stages.tuned-1.lr (line 13): should be a valid number"),
        (("data: best, lr", "data: bests, lr"), "stages.tuned-1.data (line 13): unknown stage `bests`"),
    ],
)
def test_a_mistake_is_reported_with_its_line_in_the_file(shelf: Shelf, change: tuple[str, str], fault: str) -> None:
    faults = refused(shelf, RECIPE.replace(*change), *INPUTS)
    assert any(line.startswith(fault) for line in faults), faults


def test_rounds_without_what_is_repeated_and_too_many_stages_are_refused(shelf: Shelf) -> None:
    text = "name: a\nrounds: 2\nstages: {made: {run: generate, model: $m, prompts: [Hi]}}\ninputs: {m: {type: model}}\n"
    assert any("needs `round`" in line for line in refused(shelf, text, "m=tuned"))
    more = "".join(f"    more{i}: {{run: score, data: answers, reward: $judge}}\n" for i in range(10))
    many = RECIPE.replace("rounds: 3", "rounds: 20").replace("    scored:", more + "    scored:")
    assert any("the limit is 200" in line for line in refused(shelf, many, *INPUTS))


def test_a_launch_form_knows_what_inputs_repeated_stages_read() -> None:
    roles = {given.name: given.roles for given in RecipeOut.of(RECIPE.replace(", rewards: [$judge]", "")).inputs}
    assert roles["judge"] == ["reward"]


def test_a_reference_to_a_repeated_stage_by_its_round_is_taken_as_it_is(shelf: Shelf) -> None:
    made = plan(shelf, text=RECIPE.replace("model: tuned, data: all", "model: tuned-1, data: all"))
    assert inputs(made, "last")["model"] == "tuned-1"


@pytest.mark.parametrize(
    ("overrides", "references"),
    [([], ["sft", "sft", "sft"]), (["dpo.reference=previous"], ["sft", "dpo-1", "dpo-2"])],
)
def test_iterative_dpo_compares_with_sft_or_with_the_round_before(
    shelf: Shelf, overrides: list[str], references: list[str]
) -> None:
    text = (Path(__file__).parents[2] / "recipes" / "iterative-dpo.yaml").read_text()
    made = make_plan(text, ["base=tiny", "preferences=hh", *overrides], shelf)
    rounds = [inputs(made, f"dpo-{i}") for i in (1, 2, 3)]
    assert [config["model"] for config in rounds] == ["sft", "dpo-1", "dpo-2"]
    assert [config["data"] for config in rounds] == ["pairs-1", "pairs-2", "pairs-3"]
    assert [config["reference"] for config in rounds] == references
    assert [inputs(made, "report")[f"entrants.{i}"] for i in range(4)] == ["sft", "dpo-1", "dpo-2", "dpo-3"]


STOP = (
    RECIPE.replace("rounds: 3\n", "rounds: {count: 3, stop: {judge: independent, prompts: 50}}\n")
    .replace("reward: $judge", "reward: teacher")
    .replace("rewards: [$judge]", "rewards: [teacher, independent]")
    .replace("  questions:", "  pairs: {type: dataset, kind: preferences}\n  questions:")
    .replace("  sft: {", "  teacher: {run: train, method: reward_model, model: $policy, data: $pairs}\n  sft: {")
)
PAIRS = "pairs=hh"


def test_a_stop_rule_adds_a_check_of_each_round_for_which_the_next_one_waits(shelf: Shelf) -> None:
    made = plan(shelf, PAIRS, text=STOP)
    assert inputs(made, "check-1") == {
        "entrants.0": "sft", "entrants.1": "tuned-1", "rewards.0": "independent", "data": "questions"
    }  # fmt: skip
    assert [inputs(made, "check-3")[f"entrants.{n}"] for n in range(3)] == ["sft", "tuned-2", "tuned-3"]
    assert (stage(made, "check-2").config.prompts, stage(made, "check-2").config.decides) == (50, True)
    assert not stage(made, "report").config.decides
    assert not any("after.0" in inputs(made, f"{name}-1") for name in ("answers", "scored", "best", "tuned", "check"))
    for name in ("answers", "scored", "best", "tuned", "check"):
        assert [inputs(made, f"{name}-{n}")["after.0"] for n in (2, 3)] == ["check-1", "check-2"]
    # What takes the last round's policy waits to learn which round that is; lists have every round in any case.
    assert inputs(made, "last")["after.0"] == "check-3"
    assert "after.0" not in inputs(made, "all") | inputs(made, "report")
    assert made.rounds is not None
    assert (made.rounds.start, made.rounds.judge) == ("sft", "independent")
    assert [round_.stages for round_ in made.rounds.rounds] == [
        [f"{name}-{n}" for name in ("answers", "scored", "best", "tuned")] for n in (1, 2, 3)
    ]


def test_overrides_change_the_rule_or_take_it_away(shelf: Shelf) -> None:
    made = plan(shelf, PAIRS, "rounds=2", "check-2.prompts=20", "rounds.stop.seed=4", text=STOP)
    assert [stage(made, f"check-{n}").config.prompts for n in (1, 2)] == [50, 20]
    assert stage(made, "check-1").config.seed == 4
    assert "check-3" not in [planned.name for planned in made.stages]
    without = plan(shelf, PAIRS, "rounds.stop=null", "rounds.count=1", text=STOP)
    assert not any(planned.name.startswith("check") for planned in without.stages)
    assert "after.0" not in inputs(without, "last")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("judge: independent, ", ""), "rounds.stop (line 7): needs `judge`: a model that no stage learns from"),
        (("judge: independent", "judge: teacher"), "rounds.stop.judge (line 7): `teacher` is read by `scored-1`"),
        (("judge: independent", "judge: nobody"), "stages.check-1.rewards.0 (line 7): unknown stage `nobody`"),
        (("prompts: 50", "prompts: few"), "stages.check-1.prompts (line 7): should be a valid integer"),
        (
            ("prompts: 50", "promts: 50"),
            "stages.check-1.promts (line 7): unknown key `promts`; did you mean `prompts`?",
        ),
        (("count: 3", "count: many"), "rounds (line 7): `rounds` must be a whole number from 1 to 20, got 'many'"),
        (("count: 3", "cout: 3"), "rounds.cout (line 7): unknown key `cout`; did you mean `count`?"),
        (("  first:", "  check:"), "rounds.stop (line 7): there is also a stage `check` outside of the rounds"),
    ],
)
def test_a_mistake_in_the_rule_is_reported_with_its_line(shelf: Shelf, change: tuple[str, str], fault: str) -> None:
    faults = refused(shelf, STOP.replace(*change), *INPUTS, PAIRS)
    assert any(line.startswith(fault) for line in faults), faults


def test_rounds_may_begin_with_a_model_of_the_registry(shelf: Shelf) -> None:
    made = plan(shelf, PAIRS, text=STOP.replace("previous: sft", "previous: $policy"))
    assert made.rounds is not None
    assert (made.rounds.start, made.rounds.start_model) == ("tuned", shelf.models["tuned"].id)
    assert inputs(made, "check-1")["entrants.0"] == "tuned"
