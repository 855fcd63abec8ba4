"""The select stage on hand-made rewards: what is kept, what is dropped, and every figure."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy
from hand_pipeline import HandPipeline, killed_when

from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.run_config import RUN_CONFIG
from steerboard_contracts.stage.events import Failed, Log, Succeeded

# By prompt: answers with their rewards. The last three groups teach nothing.
GROUPS = [
    [("a", 1.0), ("bbbb", 3.0), ("cc", 2.0)],
    [("x", -1.0), ("y", -1.0), ("zz", 0.5)],
    [("best", 4.0), ("best", 4.0), ("worst", 0.0)],
    [("one", 2.0), ("two", 2.0), ("six", 2.0)],
    [("same", 1.0), ("same", 1.0), ("same", 1.0)],
    [("alone", 9.0)],
]


def answers(groups=GROUPS):
    return [
        {"prompt": f"Question {number}?", "response": text, "source": "generated", "reward": reward}
        | {"group": 10 + number, "candidate": candidate}
        for number, group in enumerate(groups)
        for candidate, (text, reward) in enumerate(group)
    ]


@pytest.fixture
def stages(tmp_path):
    pipeline = HandPipeline(tmp_path, here=True, threads=None)
    pipeline.dataset("scored", "labelled", answers())
    return pipeline


def select(pipeline, name="selected", inputs=None, **config):
    result = pipeline.run(name, {"run": "select", **config}, inputs or {"data.0": "scored"})
    if isinstance(result.last, Failed):
        return result.last
    (_, document) = result.last.outputs
    return result, json.loads((result.directory / document.path).read_text())


def kept(pipeline, name="selected"):
    return pipeline.rows(name)


def test_the_best_of_each_group_is_an_instruction_with_its_place(stages):
    select(stages, scale="raw")
    rows = kept(stages)
    assert [(row["response"], row["group"], row["candidate"], row["score"]) for row in rows] == [
        ("bbbb", 10, 1, 3.0),
        ("zz", 11, 2, 0.5),
        ("best", 12, 0, 4.0),
    ]
    assert [row["prompt"][0]["content"] for row in rows] == ["Question 0?", "Question 1?", "Question 2?"]
    assert {row["source"] for row in rows} == {"generated"}
    assert stages.things["selected"].kind == "instructions"


def test_best_and_worst_are_a_pair_with_the_margin_of_their_scores(stages):
    select(stages, keep="best_and_worst", scale="raw")
    assert stages.things["selected"].kind == "preferences"
    assert [(row["chosen"], row["rejected"], row["margin"]) for row in kept(stages)] == [
        ("bbbb", "a", 2.0),
        ("zz", "x", 1.5),
        ("best", "worst", 4.0),
    ]


def test_further_pairs_are_of_the_next_best_and_worst_and_no_answer_is_in_two(stages):
    group = [("a", 1.0), ("b", 5.0), ("c", 2.0), ("d", 4.0), ("e", 3.0), ("f", 2.5), ("g", 2.5)]
    stages.dataset("many", "labelled", answers([group, [("x", 2.0), ("y", 1.0), ("x", 1.5), ("x", 1.6)]]))
    given = {"data.0": "many"}
    select(stages, inputs=given, keep="best_and_worst", scale="raw", pairs=8)
    # c and e: 1.0 apart; f stays alone in the middle. The second pair of the second group is of one text.
    pairs = {(row["chosen"], row["rejected"], row["margin"]) for row in kept(stages)}
    assert pairs == {("b", "a", 4.0), ("d", "c", 2.0), ("e", "f", 0.5), ("x", "y", 1.0)}
    select(stages, "two", given, keep="best_and_worst", scale="raw", pairs=2, min_margin=1.5)
    assert {(row["chosen"], row["rejected"]) for row in kept(stages, "two")} == {("b", "a"), ("d", "c")}


def test_all_answers_are_labelled_with_their_score_or_that_less_their_groups_mean(stages):
    select(stages, keep="all", scale="raw")
    assert [row["reward"] for row in kept(stages)] == [1.0, 3.0, 2.0, -1.0, -1.0, 0.5, 4.0, 4.0, 0.0]
    assert stages.things["selected"].kind == "labelled"
    select(stages, "relative", keep="all", scale="raw", relative=True)
    assert [row["reward"] for row in kept(stages, "relative")] == pytest.approx(
        [-1, 1, 0, -0.5, -0.5, 1, 4 / 3, 4 / 3, -8 / 3]
    )


def test_groups_that_teach_nothing_are_dropped_and_counted(stages):
    result, figures = select(stages)
    assert figures["dropped"] == {"single": 1, "equal_texts": 1, "tied": 1}
    assert (figures["groups"], figures["answers"], figures["kept_groups"], figures["rows"]) == (6, 16, 3, 3)
    assert isinstance(result.last, Succeeded)
    assert {name: value for name, value in result.last.summary.items() if name.startswith("dropped")} == {
        "dropped_single": 1,
        "dropped_equal_texts": 1,
        "dropped_tied": 1,
    }
    said = [event.message for event in result.events if isinstance(event, Log)]
    assert said == ["dropped 3 of 6 groups: 1 of equal texts, 1 with one answer, 1 tied"]


def test_a_small_margin_counts_as_a_tie_when_asked_to(stages):
    _, figures = select(stages, scale="raw", min_margin=1.5)
    assert figures["dropped"]["tied"] == 2
    assert [row["response"] for row in kept(stages)] == ["bbbb", "best"]


def test_figures_are_those_of_the_groups_by_hand(stages):
    _, figures = select(stages, scale="raw")
    # Groups of two answers or more: means 2, -0.5, 8/3, 2, 1; bests 3, 0.5, 4, 2, 1.
    assert figures["mean"]["value"] == pytest.approx((2 - 0.5 + 8 / 3 + 2 + 1) / 5)
    assert figures["best"]["value"] == pytest.approx((3 + 0.5 + 4 + 2 + 1) / 5)
    assert figures["unique_texts"]["value"] == pytest.approx((1 + 1 + 2 / 3 + 1 + 1 / 3) / 5)
    gaps = [4 - 7 / 3, 2 - 4 / 3, 4 - 13 / 3, 0, 0]
    assert figures["length_gap"]["value"] == pytest.approx(sum(gaps) / 5)
    (reward,) = figures["rewards"]
    assert (reward["dataset"], reward["weight"]) == ("scored", 1.0)
    assert reward["best"]["value"] == figures["best"]["value"]
    curve = {point["k"]: point for point in figures["curve"]}
    assert figures["curve_groups"] == 5
    assert sorted(curve) == [1, 2, 3]
    assert curve[1]["score"]["value"] == pytest.approx(figures["mean"]["value"])
    assert curve[3]["score"]["value"] == pytest.approx(figures["best"]["value"])
    twos = [(3 + 3 + 2) / 3, (0.5 + 0.5 - 1) / 3, 4, 2, 1]
    assert curve[2]["score"]["value"] == pytest.approx(sum(twos) / 5)
    assert curve[2]["rewards"] == [pytest.approx(sum(twos) / 5)]
    assert curve[2]["kl"] == pytest.approx(np.log(2) - 0.5)
    assert sum(bin_["n"] for bin_ in figures["margins"]) == 5


def test_z_scores_are_those_of_the_labelled_dataset(stages):
    normaliser = Normaliser(mean=1.0, sd=2.0, n=100, reward_source="judge")
    stages.dataset("normalised", "labelled", answers(), normaliser)
    _, figures = select(stages, inputs={"data.0": "normalised"})
    assert [row["score"] for row in kept(stages)] == [1.0, -0.25, 1.5]
    assert figures["rewards"][0]["source"] == "judge"
    assert figures["rewards"][0]["best"]["value"] == pytest.approx((3 + 0.5 + 4 + 2 + 1) / 5), "rewards are raw"


def test_a_penalty_on_characters_changes_which_answer_is_best(stages):
    _, figures = select(stages, scale="raw", penalty=0.6)
    # bbbb: 3 - 2.4, cc: 2 - 1.2; of the tied group all lose the same.
    assert [(row["response"], row["score"]) for row in kept(stages)] == [
        ("cc", pytest.approx(0.8)),
        ("zz", pytest.approx(-0.7)),
        ("best", pytest.approx(1.6)),
    ]
    assert figures["penalty"] == 0.6
    assert figures["rewards"][0]["best"]["value"] == pytest.approx((2 + 0.5 + 4 + 2 + 1) / 5), "rewards are unpenalised"


def test_several_rewards_are_z_scored_before_they_are_weighted(stages):
    # The second reward is a hundred times as large: only as z-scores do the two weigh alike.
    helpful = Normaliser(mean=0.0, sd=1.0, n=100, reward_source="helpful")
    harmless = Normaliser(mean=0.0, sd=100.0, n=100, reward_source="harmless")
    first = [[("a", 1.0), ("b", 0.0), ("c", 0.9)], [("d", 2.0), ("e", 0.0), ("f", 0.0)]]
    second = [[("a", 0.0), ("b", 100.0), ("c", 90.0)], [("d", 0.0), ("e", 300.0), ("f", 0.0)]]
    stages.dataset("one", "labelled", answers(first), helpful)
    stages.dataset("two", "labelled", answers(second), harmless)
    inputs = {"data.0": "one", "data.1": "two"}

    def chosen(**config):
        _, figures = select(stages, inputs=inputs, **config)
        return [row["response"] for row in kept(stages)], figures

    assert chosen()[0] == ["c", "e"]
    assert chosen(weights=[3.0, 1.0])[0] == ["c", "d"]
    assert chosen(weights=[1.0, -1.0])[0] == ["a", "d"]
    texts, figures = chosen(scale="raw")
    assert texts == ["b", "e"]
    assert [source["source"] for source in figures["rewards"]] == ["helpful", "harmless"]
    r = np.corrcoef([1, 0, 0.9, 2, 0, 0], [0, 100, 90, 0, 300, 0])[0, 1]
    together = figures["correlations"]
    assert (together["names"], together["n"]) == (["helpful", "harmless"], 6)
    assert together["pearson"] == [[pytest.approx(1), pytest.approx(r)], [pytest.approx(r), pytest.approx(1)]]
    rho = scipy.stats.spearmanr([1, 0, 0.9, 2, 0, 0], [0, 100, 90, 0, 300, 0])[0]
    assert together["spearman"][0][1] == pytest.approx(rho)
    last = figures["curve"][-1]
    assert last["rewards"] == [pytest.approx(0), pytest.approx((100 + 300) / 2)]


def test_answers_of_a_group_may_be_anywhere_in_the_dataset(stages):
    rows = answers()
    order = np.random.default_rng(0).permutation(len(rows))
    stages.dataset("shuffled", "labelled", [rows[i] for i in order])
    for keep in ("best", "best_and_worst"):
        select(stages, "plain", keep=keep)
        select(stages, "mixed", inputs={"data.0": "shuffled"}, keep=keep)
        by_group = [
            {row["group"]: [row.get(side) for side in ("response", "chosen", "rejected")] for row in kept(stages, name)}
            for name in ("plain", "mixed")
        ]
        assert by_group[0] == by_group[1]
        assert len(by_group[0]) == 3


def refused(pipeline, rows=None, kind="labelled", **config):
    if rows is not None:
        pipeline.dataset("scored", kind, rows)
    last = select(pipeline, **config)
    assert isinstance(last, Failed)
    assert not (pipeline.directory / "selected" / "outputs" / "selected.jsonl").exists()
    return last


def test_one_answer_a_prompt_is_refused_with_the_way_out(stages):
    failed = refused(stages, answers([[("a", 1.0)], [("b", 2.0)]]))
    assert (failed.code, failed.retryable) == ("single_answers", False)
    assert "n: 8" in (failed.hint or "")


def test_input_that_cannot_be_selected_from_is_refused_with_its_rows(stages):
    rows = answers()
    assert refused(stages, [{**rows[0], "group": None, "candidate": None}]).code == "no_groups"
    other = [{**row, "prompt": "Another?"} if place == 2 else row for place, row in enumerate(rows)]
    failed = refused(stages, other)
    assert failed.code == "bad_groups"
    assert "row 2 and row 0" in failed.detail
    twice = [{**row, "candidate": 0} if place == 1 else row for place, row in enumerate(rows)]
    failed = refused(stages, twice)
    assert failed.code == "bad_groups"
    assert "rows 0 and 1 are both candidate 0 of group 10" in failed.detail
    assert refused(stages, rows, kind="instructions").code == "wrong_dataset_kind"
    assert refused(stages, answers([GROUPS[3], GROUPS[4]])).code == "empty_selection"
    assert refused(stages, rows, weights=[1.0, 2.0]).code == "bad_weights"
    assert refused(stages, [{**rows[0], "reward": float("nan")}, rows[1]]).code == "non_finite_reward"


@pytest.mark.parametrize("change", [{"response": "other"}, {"prompt": "Other?"}, {"candidate": 7}, None])
def test_rewards_of_other_answers_are_not_added_up(stages, change):
    rows = answers()
    changed = [{**row, **change} if place == 5 else row for place, row in enumerate(rows)] if change else rows[:-1]
    stages.dataset("other", "labelled", changed)
    failed = refused(stages, inputs={"data.0": "scored", "data.1": "other"})
    assert failed.code == "rows_differ"
    assert f"row {5 if change else len(rows) - 1} of other" in failed.detail


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"weights": [1.0, 0.0]}, "weight of 0"),
        ({"relative": True}, "has none"),
        ({"pairs": 2}, "makes none"),
        ({"penalty": -1}, "penalty"),
    ],
)
def test_settings_that_mean_nothing_are_refused(config, words):
    with pytest.raises(ValueError, match=words):
        RUN_CONFIG.validate_python({"run": "select", **config})


def test_a_killed_selection_starts_over_and_writes_the_same_bytes(tmp_path):
    random = np.random.default_rng(0)
    pipeline = HandPipeline(tmp_path, threads=None)
    groups = [[(f"answer {random.integers(9)}" * 9, float(random.normal())) for _ in range(4)] for _ in range(4000)]
    pipeline.dataset("scored", "labelled", answers(groups))
    config, inputs = {"run": "select", "keep": "best_and_worst"}, {"data.0": "scored"}
    whole = HandPipeline(tmp_path, here=True, threads=None, things=pipeline.things).run("whole", config, inputs)
    folder = pipeline.prepare("killed", config, inputs)
    partial = folder / "outputs" / ".selected.jsonl.partial"
    killed_when(lambda: partial.exists() and partial.stat().st_size > 0, folder)
    assert [path.name for path in (folder / "outputs").iterdir()] == [".selected.jsonl.partial"]
    again = HandPipeline(tmp_path, here=True, threads=None, things=pipeline.things).run("killed", config, inputs)
    assert isinstance(again.last, Succeeded)
    for output in again.last.outputs:
        assert (folder / output.path).read_bytes() == (whole.directory / output.path).read_bytes()
    assert not partial.exists()
