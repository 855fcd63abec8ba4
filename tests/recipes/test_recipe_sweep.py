"""A sweep of a recipe is written out as variants: what differs several times, everything else once."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipe_plans import refused, stage
from recipe_shelf import Shelf

from steerboard.recipes.planning.plan import Plan, make_plan

RECIPE = """\
name: swept
inputs:
  policy: {type: model}
  judge: {type: model}
  questions: {type: dataset, kind: prompts}
  graded: {type: dataset, kind: instructions}
sweep:
  vary:
    mle.threshold: [0.0, 0.5]
    mixture.size: [100, 200]
  metric: report
stages:
  sft: {run: train, method: sft, model: $policy, data: $graded}
  answers: {run: generate, model: sft, data: $questions}
  mixture: {run: mix, parts: [{data: answers, share: 0.5}, $graded], size: 50}
  labelled: {run: score, data: mixture, reward: $judge}
  mle: {run: train, method: mle_filter, model: sft, data: labelled, threshold: 1.0}
  dt: {run: train, method: decision_transformer, model: sft, data: labelled}
  report: {run: evaluate, entrants: [sft, mle, $policy], rewards: [$judge], data: $questions}
"""
INPUTS = ("policy=tuned", "judge=judge", "questions=questions", "graded=graded")
GRID = "    mle.threshold: [0.0, 0.5]\n    mixture.size: [100, 200]\n"


def plan(shelf: Shelf, *overrides: str, text: str = RECIPE) -> Plan:
    return make_plan(text, [*INPUTS, *overrides], shelf)


def inputs(made: Plan, name: str) -> dict[str, str]:
    return {slot: getattr(source, "text", None) or source.name for slot, source in stage(made, name).inputs.items()}


def names(made: Plan) -> list[str]:
    return [planned.name for planned in made.stages]


def values(made: Plan) -> list[dict[str, object]]:
    assert made.sweep is not None
    return [variant.values for variant in made.sweep.variants]


def test_stages_that_do_not_differ_are_there_once_and_those_downstream_of_a_swept_one_in_each_variant(
    shelf: Shelf,
) -> None:
    made = plan(shelf)
    expected = ["sft", "answers", "mixture-1", "mixture-2", "labelled-1", "labelled-2"]
    expected += ["mle-1", "mle-2", "mle-3", "mle-4", "dt-1", "dt-2", "report"]
    assert sorted(names(made)) == sorted(expected)
    assert [stage(made, f"mixture-{n}").config.size for n in (1, 2)] == [100, 200]
    # threshold 0 at both sizes, then threshold 0.5: a stage of two variants has the number of the first.
    assert [stage(made, f"mle-{n}").config.threshold for n in (1, 2, 3, 4)] == [0.0, 0.0, 0.5, 0.5]
    assert [inputs(made, f"mle-{n}")["data"] for n in (1, 2, 3, 4)] == [f"labelled-{n}" for n in (1, 2, 1, 2)]
    assert inputs(made, "mixture-2") == {"parts.0": "answers", "parts.1": "graded"}
    assert made.sweep is not None
    third = made.sweep.variants[2]
    assert (third.number, third.judged, third.stages) == (3, "mle-3", ["mixture-1", "labelled-1", "mle-3", "dt-1"])
    assert third.values == {"mle.threshold": 0.5, "mixture.size": 100}
    assert any("4 variants of mle.threshold and mixture.size" in note for note in made.notes)


def test_one_evaluation_compares_all_variants_in_their_order(shelf: Shelf) -> None:
    given = inputs(plan(shelf), "report")
    assert [given[f"entrants.{i}"] for i in range(6)] == ["sft", "mle-1", "mle-2", "mle-3", "mle-4", "tuned"]
    assert given["rewards.0"] == "judge"


def test_what_a_stage_learns_from_can_vary(shelf: Shelf) -> None:
    text = RECIPE.replace(GRID, "    dt.data: [labelled, filtered]\n").replace("entrants: [sft, mle", "entrants: [dt")
    text = text.replace("  dt:", "  filtered: {run: score, data: answers, reward: $judge}\n  dt:")
    made = plan(shelf, text=text)
    assert [inputs(made, f"dt-{n}")["data"] for n in (1, 2)] == ["labelled", "filtered"]
    assert names(made).count("labelled") == names(made).count("mle") == 1


def test_one_value_may_be_that_a_field_is_not_set(shelf: Shelf) -> None:
    """A Decision Transformer of all rows, next to some of filtered rows."""
    text = RECIPE.replace(GRID, "    dt.threshold: [null, 0.0, 0.5]\n").replace("entrants: [sft, mle", "entrants: [dt")
    made = plan(shelf, text=text)
    assert [stage(made, f"dt-{n}").config.threshold for n in (1, 2, 3)] == [None, 0.0, 0.5]
    assert values(made)[0] == {"dt.threshold": None}


def test_fields_inside_others_vary_too(shelf: Shelf) -> None:
    vary = "    mixture.parts.0.share: [0.2, 0.4]\n    answers.decoding.temperature: [0.5, 1.0]\n"
    made = plan(shelf, text=RECIPE.replace(GRID, vary))
    assert [stage(made, f"answers-{n}").config.decoding.temperature for n in (1, 2)] == [0.5, 1.0]
    shares = [stage(made, f"mixture-{n}").config.parts[0].share for n in (1, 2, 3, 4)]
    assert shares == [0.2, 0.2, 0.4, 0.4]


def test_a_random_search_draws_the_same_again_and_within_its_ranges(shelf: Shelf) -> None:
    vary = "    mle.lr: {min: 1.0e-7, max: 1.0e-5, scale: log}\n    mle.epochs: {min: 1, max: 3}\n"
    vary += "    mle.threshold: [0.0, 0.5]\n"
    text = RECIPE.replace(GRID, vary).replace("  metric", "  search: random\n  variants: 12\n  metric")
    made = values(plan(shelf, text=text))
    assert made == values(plan(shelf, text=text))
    assert made != values(plan(shelf, "sweep.seed=1", text=text))
    assert made[:5] == values(plan(shelf, "sweep.variants=5", text=text))
    rates = sorted(float(str(row["mle.lr"])) for row in made)
    assert 1e-7 <= rates[0] < 1e-6 < rates[-1] <= 1e-5
    assert {row["mle.epochs"] for row in made} == {1, 2, 3}
    assert {row["mle.threshold"] for row in made} == {0.0, 0.5}
    config = stage(plan(shelf, text=text), "mle-12").config
    assert config.lr == made[11]["mle.lr"]


def test_overrides_change_the_sweep_all_variants_or_leave_it_out(shelf: Shelf) -> None:
    made = plan(shelf, "sweep.vary.mle.threshold=[0.1, 0.2, 0.3]", "mle.lr=2e-6")
    assert len(values(made)) == 6
    assert {stage(made, f"mle-{n}").config.lr for n in range(1, 7)} == {2e-6}
    alone = plan(shelf, "sweep=null")
    assert alone.sweep is None
    assert stage(alone, "mle").config.threshold == 1.0
    faults = refused(shelf, RECIPE, *INPUTS, "mle-2.lr=1e-6")
    assert any("`mle-2` is a stage of variant 2 of the sweep: set `mle`" in line for line in faults)


def test_the_figure_of_training_can_decide_and_a_score_where_several_are_asked_for(shelf: Shelf) -> None:
    made = plan(shelf, "sweep.metric=mle.eval_loss", "sweep.goal=minimize").sweep
    assert made is not None
    assert (made.stage, made.figure, made.goal) == (None, "eval_loss", "minimize")
    assert [variant.judged for variant in made.variants] == ["mle-1", "mle-2", "mle-3", "mle-4"]
    scored = RECIPE.replace("entrants: [sft, mle", "entrants: [sft, {model: dt, scores: [0.0, 5.0]}")
    scored = scored.replace("mle.threshold: [0.0, 0.5]", "dt.lr: [1.0e-6, 2.0e-6]")
    asked = plan(shelf, "sweep.score=5.0", text=scored).sweep
    assert asked is not None
    assert (asked.variants[3].judged, asked.score and asked.score.score) == ("dt-4", 5.0)
    assert any("sweep (line 7): needs `score`" in line for line in refused(shelf, scored, *INPUTS))
    both = RECIPE.replace("[sft, mle,", "[sft, mle, dt,")
    assert any("needs `entrant`: of mle and dt" in line for line in refused(shelf, both, *INPUTS))
    # Both vary with the size alone.
    chosen = plan(shelf, "sweep.entrant=dt", text=both.replace("    mle.threshold: [0.0, 0.5]\n", "")).sweep
    assert chosen is not None
    assert [variant.judged for variant in chosen.variants] == ["dt-1", "dt-2"]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (
            ("mle.threshold:", "mel.threshold:"),
            "sweep.vary.mel.threshold (line 9): unknown stage `mel`; did you mean",
        ),
        (
            ("mle.threshold:", "mle.treshold:"),
            "sweep.vary.mle.treshold (line 9): the stage `mle` (train mle_filter) has",
        ),
        (("mle.threshold:", "mle:"), "sweep.vary.mle (line 9): must be a stage and its field"),
        (("mle.threshold:", "report.prompts:"), "sweep.vary.report.prompts (line 9): `report` compares the variants"),
        (("mle.threshold:", "mle.method:"), "sweep.vary.mle.method (line 9): `method` cannot vary"),
        (("mixture.size:", "mixture.parts.7.share:"), "sweep.vary.mixture.parts.7.share (line 10): `7` is not an item"),
        (("[0.0, 0.5]", "[]"), "sweep.vary.mle.threshold (line 9): needs a list of values, or {min: ..., max: ...}"),
        (("[0.0, 0.5]", "[0.5, 0.5]"), "sweep.vary.mle.threshold.1 (line 9): 0.5 is in the list twice"),
        (("[0.0, 0.5]", "[0.0, high]"), "stages.mle-3.threshold (line 9): should be a valid number, got 'high'"),
        (("[100, 200]", "[100, 0]"), "stages.mixture-2.size (line 10): should be greater than or equal to 1, got 0"),
        (("[0.0, 0.5]", "{min: 0, max: 1}"), "sweep.vary.mle.threshold (line 9): a grid needs a list of values"),
        (("[0.0, 0.5]", "{min: 1, max: 1}"), "sweep.vary.mle.threshold (line 9): `min` must be below `max`"),
        ((GRID, "    mle.threshold: [0.5]\n"), "sweep.vary (line 8): makes one variant"),
        (
            ("[100, 200]", f"[{', '.join(map(str, range(1, 34)))}]"),
            "sweep.vary (line 8): makes 66 variants; the limit is 64",
        ),
        (("  metric: report\n", ""), "sweep (line 7): needs `metric`"),
        (("metric: report", "metric: repotr"), "sweep.metric (line 11): unknown stage `repotr`; did you mean"),
        (("metric: report", "metric: report.other"), "sweep.metric (line 11): `other` is not one of the `rewards`"),
        (("metric: report", "metric: labelled"), "sweep.metric (line 11): `labelled` has no held-out figure"),
        (("metric: report", "metric: mle.loss"), "sweep.metric (line 11): `loss` is none of the held-out figures"),
        (("metric: report", "metric: mle.eval_loss"), "sweep (line 7): needs `goal`"),
        (("metric: report", "metric: report\n  sede: 1"), "sweep.sede (line 12): unknown key `sede`; did you mean"),
        (("metric: report", "metric: report\n  search: random"), "sweep (line 7): needs `variants`: how many"),
        (("metric: report", "metric: report\n  variants: 3"), "sweep.variants (line 12): a grid takes every"),
        (
            ("metric: report", "metric: report\n  search: random\n  variants: 5"),
            "sweep.variants (line 13): 5 different variants are asked for, and only 4 were found",
        ),
        (
            ("mixture.size: [100, 200]", "dt.lr: [1.0e-6, 2.0e-6]"),
            "sweep.vary.dt.lr (line 10): changes nothing of `mle`, whose figure decides",
        ),
        (
            ("rewards: [$judge]", "rewards: [$judge], labelled: labelled"),
            "stages.report.labelled (line 19): `labelled`",
        ),
        (("  dt:", "  mle-2:"), "stages.mle-2 (line 18): there is also a stage `mle-2`"),
        (("sweep:", "rounds: 2\nsweep:"), "sweep (line 8): a recipe with rounds takes no sweep"),
        (("  vary:\n" + GRID, "  vary: {}\n"), "sweep.vary (line 8): names no field"),
    ],
)
def test_a_mistake_is_reported_with_its_line_in_the_file(shelf: Shelf, change: tuple[str, str], fault: str) -> None:
    assert change[0] in RECIPE
    faults = refused(shelf, RECIPE.replace(*change), *INPUTS)
    assert any(line.startswith(fault) for line in faults), faults


@pytest.mark.parametrize(
    ("swept", "expected"),
    [
        ("mle.threshold: [-0.5, 0.5]", [-0.5, 0.5]),
        ("dt.threshold: [null, 0.5]", [None, 0.5]),
        ("rwr.beta: [1.0, 5.0]", [1.0, 5.0]),
        ("dt.score_scale: [zscore, quantile]", ["zscore", "quantile"]),
        ("dt.score_step: [0.1, 0.5, 1.0]", [0.1, 0.5, 1.0]),
    ],
)
def test_what_the_paper_left_open_can_be_swept(shelf: Shelf, swept: str, expected: list[object]) -> None:
    policy = swept.partition(".")[0]
    text = RECIPE.replace(GRID, f"    {swept}\n").replace("[sft, mle, $policy]", f"[sft, {policy}]")
    text = text.replace("  dt:", "  rwr: {run: train, method: rwr, model: sft, data: labelled}\n  dt:")
    made = plan(shelf, text=text)
    assert [list(row.values()) for row in values(made)] == [[value] for value in expected]
    field = swept.partition(".")[2].partition(":")[0]
    assert [getattr(stage(made, f"{policy}-{n}").config, field) for n in range(1, len(expected) + 1)] == expected
    assert names(made).count("labelled") == 1


def test_dpo_sweep_trains_one_policy_for_each_beta_and_everything_else_once(shelf: Shelf) -> None:
    text = (Path(__file__).parents[2] / "recipes" / "dpo-sweep.yaml").read_text()
    made = make_plan(text, ["base=tiny", "preferences=hh"], shelf)
    betas = [stage(made, f"dpo-{n}").config.beta for n in range(1, 6)]
    assert betas == [0.01, 0.05, 0.1, 0.3, 0.5]
    assert [names(made).count(name) for name in ("sft", "reward", "independent", "report")] == [1, 1, 1, 1]
    assert made.sweep is not None
    assert (made.sweep.stage, made.sweep.judge) == ("report", 1)
