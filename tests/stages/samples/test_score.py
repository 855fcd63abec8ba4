"""Scoring: one reward a row, the same whatever its batch, in shards and after a kill."""

from __future__ import annotations

import json

import pytest
import torch
from hand_pipeline import run_here
from transformers import AutoModelForSequenceClassification

from steerboard_contracts.stage.events import Failed, Succeeded
from steerboard_contracts.stage.spec import Shard
from steerboard_workers.engines.rewards import batches_by_tokens
from steerboard_workers.stages.models.model_io import load_reward_model
from steerboard_workers.stages.models.scoring import Scorable, reward_engine, score_texts

SCORE = {"run": "score", "batch_tokens": 700}


@pytest.fixture
def inputs():
    return {"data": "$instructions", "reward": "reward"}


def values(result):
    lines = (result.directory / "outputs" / "rewards.jsonl").read_text().splitlines()
    return {row["row"]: row["value"] for row in map(json.loads, lines)}


def test_every_row_gets_one_reward_in_row_order(pipeline, inputs):
    result = pipeline.run("scored", SCORE, inputs)
    assert isinstance(result.last, Succeeded)
    assert list(values(result)) == list(range(300))


def test_a_score_does_not_change_with_its_batch_mates(pipeline):
    reward_model = load_reward_model(pipeline.things["reward"].path)
    samples = [Scorable(row["prompt"], row["response"]) for row in pipeline.rows("$instructions")[:40]]
    together = score_texts(reward_engine(reward_model), samples, 4096)
    alone = [score_texts(reward_engine(reward_model), [sample], 4096)[0] for sample in samples]
    assert together == pytest.approx(alone, abs=1e-5)
    assert max(together) - min(together) > 1e-3


def test_scores_equal_the_saved_classifier_read_by_transformers(pipeline):
    reward_model = load_reward_model(pipeline.things["reward"].path)
    plain = AutoModelForSequenceClassification.from_pretrained(pipeline.things["reward"].path)
    for row in pipeline.rows("$instructions")[:5]:
        rendered = reward_model.renderer.render(row["prompt"], row["response"])
        with torch.no_grad():
            theirs = plain(input_ids=torch.tensor([rendered.ids])).logits.item()
        ours = score_texts(reward_engine(reward_model), [Scorable(row["prompt"], row["response"])], 4096)[0]
        assert ours == pytest.approx(theirs, abs=1e-5)


def test_shards_cover_every_row_once_with_the_same_rewards(pipeline, inputs):
    whole = values(pipeline.run("whole", SCORE, inputs))
    gathered = {}
    for index in range(3):
        part = shard(pipeline, inputs, index)
        assert not gathered.keys() & part.keys()
        gathered |= part
    assert gathered.keys() == whole.keys()
    assert all(gathered[row] == pytest.approx(whole[row], abs=1e-5) for row in whole)


def shard(pipeline, inputs, index):
    folder = pipeline.prepare(f"shard-{index}", SCORE, inputs, Shard(index=index, count=3))
    assert json.loads(run_here(folder)[-1])["type"] == "succeeded"
    lines = (folder / "outputs" / "rewards.jsonl").read_text().splitlines()
    return {row["row"]: row["value"] for row in map(json.loads, lines)}


def test_rows_scored_before_a_kill_are_not_scored_again(pipeline, inputs):
    undisturbed = values(pipeline.run("whole", SCORE, inputs))
    folder = pipeline.prepare("again", SCORE, inputs)
    (folder / "checkpoints").mkdir()
    kept = "".join(json.dumps({"row": row, "value": 100.0 + row}) + "\n" for row in range(50))
    (folder / "checkpoints" / "a1-rows.jsonl").write_text(kept + '{"row": 50, "val')
    result = pipeline.run("again", SCORE, inputs)
    assert isinstance(result.last, Succeeded)
    assert result.last.summary["resumed_rows"] == 50
    again = values(result)
    assert [again[row] for row in range(50)] == [100.0 + row for row in range(50)]
    assert {r: again[r] for r in range(50, 300)} == pytest.approx({r: undisturbed[r] for r in range(50, 300)}, abs=1e-5)


def test_a_dataset_without_responses_is_refused(pipeline):
    result = pipeline.run("scored", SCORE, {"data": "$prompts", "reward": "reward"})
    assert isinstance(result.last, Failed)
    assert result.last.code == "wrong_dataset_kind"


def test_batches_keep_the_budget_and_lose_nothing():
    lengths = [5, 300, 17, 17, 80, 1, 250, 33] * 9
    batches = list(batches_by_tokens(lengths, 400))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    assert all(len(batch) * max(lengths[p] for p in batch) <= 400 for batch in batches)
