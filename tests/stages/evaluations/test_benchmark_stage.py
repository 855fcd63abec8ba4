"""The benchmark stage: a tiny reward model against known pairs, in RewardBench's own subsets."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from steerboard_contracts.stage.events import Failed, Succeeded
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_statistics.benchmarks.rewardbench import SECTIONS
from steerboard_workers.stages.models.model_io import load_reward_model
from steerboard_workers.stages.models.scoring import Scorable, reward_engine, score_texts

CONFIG = {"run": "benchmark"}
WEIGHTS = Path(__file__).parents[4] / "shared" / "data" / "rewardbench" / "section_weights.json"
SUBSETS = [name for names in SECTIONS.values() for name in names]
LATER = [{"role": "assistant", "content": "In the sun."}, {"role": "user", "content": "Why there?"}]


def rows_of(subsets, each=5):
    """The rows of each subset, with one conversation of several turns and one pair of equal texts."""
    rows = []
    for place, subset in enumerate(subsets):
        for number in range(each):
            prompt = [{"role": "user", "content": f"How do I grow {number} tomatoes in {subset}?"}]
            sides = (f"Give them {number * 7 + place} cups of water.", f"No {place}, ask {number} others.")
            chosen, rejected = sides if (place + number) % 2 else sides[::-1]
            row = {"prompt": prompt, "chosen": chosen, "rejected": rejected, "source": subset}
            if number == 1:
                row["prompt"] = prompt + LATER
            if number == 2:
                row["rejected"] = row["chosen"]
            rows.append(row)
    return rows


def known_wins(pipeline, name):
    """The (source, won) of every row by the very model, in one go."""
    model = load_reward_model(pipeline.things["reward"].path)
    rows = pipeline.rows(name)
    values = [
        score_texts(reward_engine(model), [Scorable(row["prompt"], row[side]) for row in rows], 2048)
        for side in ("chosen", "rejected")
    ]
    return [
        (row.get("source"), row["chosen"] != row["rejected"] and one > two)
        for row, one, two in zip(rows, *values, strict=True)
    ]


def finished(result):
    assert isinstance(result.last, Succeeded), result.last
    (output,) = result.last.outputs
    assert output.type == "benchmark"
    return json.loads((result.directory / output.path).read_text())


@pytest.fixture
def inputs(pipeline):
    pipeline.dataset("bench", "preferences", rows_of(SUBSETS))
    return {"reward": "reward", "pairs": "bench"}


def test_accuracies_and_sections_are_those_of_the_published_weights(pipeline, inputs):
    if not WEIGHTS.is_file():
        pytest.skip(f"RewardBench's weights are not at {WEIGHTS}")
    result = pipeline.run("benchmark", CONFIG, inputs)
    benchmark = finished(result)
    wins = known_wins(pipeline, "bench")
    assert {row["split"] for row in pipeline.rows("bench")} == {"train", "held_out"}
    assert (benchmark["pairs"], benchmark["ties"]) == (len(wins), len(SUBSETS))
    assert benchmark["accuracy"]["value"] == sum(won for _, won in wins) / len(wins)
    shares = {name: [won for source, won in wins if source == name] for name in SUBSETS}
    shares = {name: sum(won) / len(won) for name, won in shares.items()}
    assert {source["source"]: source["accuracy"]["value"] for source in benchmark["sources"]} == shares
    assert len(set(shares.values())) > 2
    text = WEIGHTS.read_text()
    published = json.loads(text[text.index("{") :])
    count = published["EXAMPLE_COUNTS"]
    by_hand = {
        section: sum(shares[name] * count[name] for name in names) / sum(count[name] for name in names)
        for section, names in published["SUBSET_MAPPING"].items()
    }
    bench = benchmark["rewardbench"]
    assert bench["sections"] == pytest.approx(by_hand)
    assert bench["overall"] == pytest.approx(sum(by_hand.values()) / 4)
    assert (bench["incomplete"], bench["unknown"]) == ({}, [])
    assert result.last.summary["rewardbench"] == bench["overall"]
    assert result.last.summary["rewardbench_chat_hard"] == bench["sections"]["Chat Hard"]


def test_equal_texts_tie_and_a_tie_is_lost(pipeline):
    same = {"prompt": "Hi", "chosen": "Yes.", "rejected": "Yes."}
    pipeline.dataset("same", "preferences", [same, {**same, "prompt": "Hello"}])
    benchmark = finished(pipeline.run("benchmark", CONFIG, {"reward": "reward", "pairs": "same"}))
    assert (benchmark["pairs"], benchmark["ties"], benchmark["accuracy"]["value"]) == (2, 2, 0.0)
    assert (benchmark["sources"], benchmark["rewardbench"]) == ([], None)


def test_an_unknown_subset_counts_among_all_and_stands_in_no_section(pipeline):
    pipeline.dataset("some", "preferences", rows_of(["mt-bench-hard", "mine"]))
    benchmark = finished(pipeline.run("benchmark", CONFIG, {"reward": "reward", "pairs": "some"}))
    assert benchmark["pairs"] == 10
    assert benchmark["rewardbench"]["unknown"] == ["mine"]
    assert list(benchmark["rewardbench"]["sections"]) == ["Chat Hard"]
    assert benchmark["rewardbench"]["overall"] is None


def test_what_was_scored_before_a_kill_is_not_scored_again(pipeline, inputs):
    undisturbed = finished(pipeline.run("whole", CONFIG, inputs))
    lines = (pipeline.directory / "whole" / "checkpoints" / "a1-rows.jsonl").read_text().splitlines()
    kept = [json.loads(line) for line in lines if line]
    assert len({row["key"] for row in kept}) == len(kept) == 2 * undisturbed["pairs"] - len(SUBSETS)
    (pipeline.directory / "again" / "checkpoints").mkdir(parents=True)
    torn = "".join(json.dumps(row) + "\n" for row in kept[:50]) + lines[-1][:20]
    (pipeline.directory / "again" / "checkpoints" / "a1-rows.jsonl").write_text(torn)
    result = pipeline.run("again", CONFIG, inputs)
    assert result.last.summary["resumed_rows"] == 50
    assert finished(result) == undisturbed
    after = (pipeline.directory / "again" / "checkpoints" / "a1-rows.jsonl").read_text().splitlines()
    assert len([line for line in after if line.endswith("}")]) == len(kept)


def test_a_reward_that_is_not_finite_ends_the_run(pipeline, inputs, tmp_path):
    folder = Path(pipeline.things["reward"].path)
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in folder.iterdir():
        (broken / path.name).write_bytes(path.read_bytes())
    weights = load_file(broken / "model.safetensors")
    weights["score.weight"] = torch.full_like(weights["score.weight"], math.nan)
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    pipeline.things["broken"] = ModelInput(name="broken", path=str(broken), content_hash="broken")
    result = pipeline.run("benchmark", CONFIG, {**inputs, "reward": "broken"})
    assert isinstance(result.last, Failed)
    assert (result.last.code, result.last.retryable) == ("non_finite_reward", False)
    assert not (pipeline.directory / "benchmark" / "outputs" / "benchmark.json").exists()


def test_a_dataset_without_pairs_is_refused(pipeline):
    result = pipeline.run("benchmark", CONFIG, {"reward": "reward", "pairs": "$instructions"})
    assert isinstance(result.last, Failed)
    assert result.last.code == "wrong_dataset_kind"
