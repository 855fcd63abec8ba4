"""The combine stage on hand-made rewards: z-scores, weights, correlations, and what a policy keeps of them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import scipy
from hand_pipeline import HandPipeline

from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.run_config import RUN_CONFIG
from steerboard_contracts.stage.events import Failed

HELPFUL = [1.0, 0.0, 0.5, 2.0, -1.0, 0.25]
# A hundred times as large, and not along with the first.
HARMLESS = [0.0, 100.0, 90.0, 0.0, 300.0, 0.0]


def rows(rewards):
    return [
        {"prompt": f"Question {place}?", "response": f"answer {place}", "source": "generated", "reward": reward}
        for place, reward in enumerate(rewards)
    ]


@pytest.fixture
def stages(tmp_path):
    pipeline = HandPipeline(tmp_path, here=True, threads=None)
    for name, rewards in (("helpful", HELPFUL), ("harmless", HARMLESS)):
        pipeline.dataset(name, "labelled", rows(rewards), Normaliser.fit(rewards, name, f"{name}-hash"))
    return pipeline


def combine(pipeline, *names, **config):
    inputs = {f"data.{place}": name for place, name in enumerate(names or ("helpful", "harmless"))}
    folder = pipeline.prepare("both", {"run": "combine", **config}, inputs)
    result = pipeline.run_folder(folder)
    if isinstance(result.last, Failed):
        return result.last
    rewards, document = result.last.outputs
    lines = [json.loads(line) for line in (folder / rewards.path).read_text().splitlines()]
    assert [line["row"] for line in lines] == list(range(len(lines)))
    return [line["value"] for line in lines], json.loads((folder / document.path).read_text()), result.last


def z(values):
    return (np.array(values) - np.mean(values)) / np.std(values)


def test_rewards_are_z_scored_over_their_dataset_and_then_weighted(stages):
    values, figures, last = combine(stages, weights=[1.0, -0.5])
    expected = z(HELPFUL) - 0.5 * z(HARMLESS)
    assert values == pytest.approx(expected)
    assert [source["weight"] for source in figures["rewards"]] == [1.0, -0.5]
    for source, rewards in zip(figures["rewards"], (HELPFUL, HARMLESS), strict=True):
        assert (source["mean"], source["sd"], source["n"]) == (
            pytest.approx(np.mean(rewards)),
            pytest.approx(np.std(rewards)),
            6,
        )
        assert sum(bin_["n"] for bin_ in source["histogram"]) == 6
    assert (figures["mean"], figures["sd"]) == (pytest.approx(0), pytest.approx(np.std(expected)))
    assert last.summary["reward_sd"] == figures["sd"]
    # Without weights each counts 1, however large its numbers are.
    assert combine(stages)[0] == pytest.approx(z(HELPFUL) + z(HARMLESS))


def test_the_pinned_mean_and_sd_count_rather_than_those_of_the_rows_given(stages):
    stages.dataset("pinned", "labelled", rows(HELPFUL), Normaliser(mean=1.0, sd=4.0, n=900, reward_source="judge"))
    values, figures, _ = combine(stages, "pinned", "harmless")
    assert values == pytest.approx((np.array(HELPFUL) - 1) / 4 + z(HARMLESS))
    assert (figures["rewards"][0]["mean"], figures["rewards"][0]["sd"], figures["rewards"][0]["n"]) == (1.0, 4.0, 900)


def test_correlations_are_scipys_with_their_n_and_the_sum_is_the_last(stages):
    values, figures, _ = combine(stages, weights=[2.0, 1.0])
    together = figures["correlations"]
    assert (together["names"], together["n"]) == (["helpful", "harmless", "sum"], 6)
    every = [HELPFUL, HARMLESS, values]
    for name, of in (("pearson", scipy.stats.pearsonr), ("spearman", scipy.stats.spearmanr)):
        assert np.array(together[name]) == pytest.approx(np.array([[of(a, b)[0] for b in every] for a in every]))
    # What each reward has of the sum's variance.
    shares = [source["share"] for source in figures["rewards"]]
    weighted = (2 * z(HELPFUL), z(HARMLESS))
    assert shares == pytest.approx([np.cov(column, values, ddof=0)[0, 1] / np.var(values) for column in weighted])
    assert sum(shares) == pytest.approx(1)


def refused(pipeline, *names, **config):
    last = combine(pipeline, *names, **config)
    assert isinstance(last, Failed)
    assert not list((pipeline.directory / "both" / "outputs").glob("*.jsonl"))
    return last


def test_what_cannot_be_combined_is_refused(stages):
    assert refused(stages, "helpful").code == "missing_input"
    assert refused(stages, weights=[1.0]).code == "bad_weights"
    stages.dataset("others", "labelled", [*rows(HELPFUL)[:5], {**rows(HELPFUL)[5], "response": "another"}])
    failed = refused(stages, "helpful", "others")
    assert (failed.code, "row 5 of others" in failed.detail) == ("rows_differ", True)
    # The same reward twice, once turned around: nothing is left.
    assert refused(stages, "helpful", "helpful", weights=[1.0, -1.0]).code == "degenerate_rewards"
    with pytest.raises(ValueError, match="weight of 0"):
        RUN_CONFIG.validate_python({"run": "combine", "weights": [1.0, 0.0]})


def test_a_sum_remembers_how_its_parts_were_normalised():
    helpful, harmless = Normaliser.fit(HELPFUL, "helpful", "a"), Normaliser.fit(HARMLESS, "harmless", "b")
    both = Normaliser.fit([0.0, 1.0], "both")
    assert "parts" not in both.model_dump(), "what is stored of a single reward has not changed"
    both.parts = [helpful.part(1.0), harmless.part(-0.5)]
    again = Normaliser.model_validate_json(both.model_dump_json())
    assert again == both
    assert again.of_model("b") == harmless
    assert again.of_model("c") is None
    assert helpful.of_model("a") == helpful
    # A new answer with rewards 3 and 50, in the units of the labelled data.
    rewards = {"a": 3.0, "b": 50.0}
    total = math.fsum(part.weight * part.z(rewards[part.reward_model_hash or ""]) for part in again.parts)
    by_hand = (3 - np.mean(HELPFUL)) / np.std(HELPFUL) - 0.5 * (50 - np.mean(HARMLESS)) / np.std(HARMLESS)
    assert total == pytest.approx(by_hand)
