"""The report of barely trained models: every figure is checked against the answers it is made of."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hand_pipeline import HandPipeline

from steerboard_contracts.report import Report
from steerboard_contracts.stage import Failed, Log, Succeeded
from steerboard_workers.stages.loading import load_reward_model
from steerboard_workers.stages.scoring import Scorable, reward_engine, score_texts
from steerboard_workers.synthetic import quality

CONFIG = {
    "run": "evaluate",
    "entrants": [{}, {"scores": [-5.0, 0.0, 5.0]}],
    "decoding": {"max_new_tokens": 16},
    "quality": "synthetic",
    "examples": 50,
}
INPUTS = {
    "entrants.0": "sft",
    "entrants.1": "dt",
    "rewards.0": "reward",
    "rewards.1": "independent",
    "data": "$prompts",
    "labelled": "labelled",
    "preferences": "$preferences",
}


@pytest.fixture(scope="module")
def evaluated(foundation, tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluated")
    pipeline = HandPipeline(folder, here=True, threads=None, things=dict(foundation.things))
    result = pipeline.run("report", CONFIG, INPUTS)
    assert isinstance(result.last, Succeeded), result.last
    report = Report.model_validate_json((result.directory / "outputs" / "report.json").read_bytes())
    return pipeline, result, report


def answers_of(report, index):
    return [(e.prompt, e.answers[index]["text"]) for e in report.examples]


def test_one_row_for_each_entrant_and_score_on_held_out_prompts_only(evaluated):
    pipeline, _, report = evaluated
    assert [(r.method, r.score) for r in report.methods] == [
        ("sft", None),
        ("decision_transformer", -5.0),
        ("decision_transformer", 0.0),
        ("decision_transformer", 5.0),
    ]
    held_out = {r["prompt"][0]["content"] for r in pipeline.rows("$prompts") if r["split"] == "held_out"}
    assert {e.prompt for e in report.examples} == held_out
    assert report.prompts == len(held_out)
    assert report.synthetic


def test_rewards_are_z_units_of_the_labelled_data(evaluated):
    pipeline, _, report = evaluated
    rewards = [row["reward"] for row in pipeline.rows("labelled")]
    mean, sd = np.mean(rewards), np.std(rewards)
    reward_model = load_reward_model(pipeline.things["reward"].path)
    for index, row in enumerate(report.methods):
        samples = [Scorable([{"role": "user", "content": p}], text) for p, text in answers_of(report, index)]
        z = (np.array(score_texts(reward_engine(reward_model), samples, 2048)) - mean) / sd
        assert row.reward_mean == pytest.approx(z.mean(), abs=1e-4)
        assert row.reward_low <= row.reward_mean <= row.reward_high
    labelled = (np.array(rewards) - mean) / sd
    assert report.labelled_rewards.p80 == pytest.approx(np.percentile(labelled, 80))
    assert report.labelled_rewards.n == 300


def test_win_rates_compare_prompt_by_prompt_with_sft(evaluated):
    _, _, report = evaluated
    assert report.methods[0].win_rate_vs_sft is None
    assert report.methods[0].independent_win_rate_vs_sft is None
    for index in (1, 2, 3):
        z = [(e.answers[index]["reward"], e.answers[0]["reward"]) for e in report.examples]
        expected = np.mean([1.0 if a > b else 0.5 if a == b else 0.0 for a, b in z])
        assert report.methods[index].win_rate_vs_sft == pytest.approx(expected)
        assert 0 <= report.methods[index].independent_win_rate_vs_sft <= 1


def test_known_quality_is_that_of_the_answers(evaluated):
    _, _, report = evaluated
    for index, row in enumerate(report.methods):
        assert row.quality_mean == pytest.approx(np.mean([quality(p, t) for p, t in answers_of(report, index)]))


def test_pair_accuracy_is_that_of_the_held_out_pairs(evaluated):
    pipeline, _, report = evaluated
    pairs = [row for row in pipeline.rows("$preferences") if row["split"] == "held_out"]
    for name, accuracy, count in (
        ("reward", report.reward_model.held_out_accuracy, report.reward_model.pairs),
        ("independent", report.reward_model.independent_held_out_accuracy, report.reward_model.independent_pairs),
    ):
        reward_model = load_reward_model(pipeline.things[name].path)
        chosen = score_texts(reward_engine(reward_model), [Scorable(r["prompt"], r["chosen"]) for r in pairs], 2048)
        rejected = score_texts(reward_engine(reward_model), [Scorable(r["prompt"], r["rejected"]) for r in pairs], 2048)
        assert count == len(pairs)
        assert accuracy == pytest.approx(np.mean(np.array(chosen) > np.array(rejected)), abs=1e-9)


def test_the_control_curve_holds_the_means_in_order_of_the_score(evaluated):
    _, _, report = evaluated
    assert report.control.requested == [-5.0, 0.0, 5.0]
    assert report.control.achieved == [row.reward_mean for row in report.methods[1:]]


def test_device_seconds_are_training_plus_its_shared_stages(evaluated):
    pipeline, _, report = evaluated
    for row, name in zip(report.methods, ("sft", "dt", "dt", "dt"), strict=True):
        model = pipeline.things[name]
        assert row.device_seconds == pytest.approx(model.cost_seconds + model.shared_seconds)


def test_few_prompts_and_cut_answers_are_warned_about(evaluated):
    _, result, report = evaluated
    assert any("held-out prompts" in w for w in report.warnings)
    cut = [row for row in report.methods if row.truncated > 0.1]
    assert cut
    assert sum("cut at the token limit" in w for w in report.warnings) == len(cut)
    assert {e.message for e in result.events if isinstance(e, Log)} >= set(report.warnings)


def test_zscores_beyond_the_data_are_warned_about_and_quantiles_are_not(pipeline):
    train = {"run": "train", "method": "decision_transformer", "batch": 16, "max_steps": 1, "checkpoint_every": 0}
    config = {**CONFIG, "entrants": [{"scores": [0.0, 50.0]}], "quality": None}
    for scale in ("zscore", "quantile"):
        pipeline.run(scale, {**train, "score_scale": scale, "score_limit": 50.0}, {"model": "sft", "data": "labelled"})
        inputs = {k: v for k, v in INPUTS.items() if not k.startswith("entrants")} | {"entrants.0": scale}
        result = pipeline.run(f"report-{scale}", config, inputs)
        report = Report.model_validate_json((result.directory / "outputs" / "report.json").read_bytes())
        assert any("99.9th percentile" in w for w in report.warnings) == (scale == "zscore")


def test_a_score_for_an_entrant_without_scores_is_refused_before_any_work(pipeline):
    config = {**CONFIG, "entrants": [{"scores": [5.0]}, {}]}
    result = pipeline.run("report", config, INPUTS)
    assert isinstance(result.last, Failed)
    assert result.last.code == "no_score_format"


def test_data_without_held_out_prompts_is_refused(pipeline):
    rows = [r for r in pipeline.rows("$prompts") if r["split"] == "train"]
    pipeline.dataset("train-only", "prompts", [{"prompt": r["prompt"]} for r in rows])
    result = pipeline.run("report", CONFIG, {**INPUTS, "data": "train-only"})
    assert isinstance(result.last, Failed)
    assert result.last.code == "empty_selection"


def test_known_quality_of_other_prompts_is_refused(pipeline):
    pipeline.dataset("foreign", "prompts", [{"prompt": f"What is {i} plus {i}?"} for i in range(100)])
    result = pipeline.run("report", CONFIG, {**INPUTS, "data": "foreign"})
    assert isinstance(result.last, Failed)
    assert result.last.code == "not_synthetic"


def test_answers_made_before_a_kill_are_kept(pipeline):
    folder = pipeline.prepare("report", CONFIG, INPUTS)
    (folder / "checkpoints").mkdir()
    kept = {"entry": 0, "row": 0, "text": "An answer of the first attempt.", "tokens": 6, "finished": True}
    (folder / "checkpoints" / "a1-rows.jsonl").write_text(json.dumps(kept) + "\n")
    result = pipeline.run("report", CONFIG, INPUTS)
    report = Report.model_validate_json((result.directory / "outputs" / "report.json").read_bytes())
    assert report.examples[0].answers[0]["text"] == kept["text"]
