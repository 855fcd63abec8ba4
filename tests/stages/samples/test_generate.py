"""Generation as a stage: splits, shards, resuming, scores, and the exported model in plain transformers."""

from __future__ import annotations

import json
from collections import Counter

import pytest
import torch
from hand_pipeline import killed_when, run_here
from transformers import AutoModelForCausalLM, AutoTokenizer

from steerboard_contracts.stage.events import Failed, Succeeded
from steerboard_contracts.stage.spec import Shard

GREEDY = {"run": "generate", "decoding": {"max_new_tokens": 12}, "batch_size": 16}
SAMPLED = {**GREEDY, "decoding": {"temperature": 1.0, "n": 2, "max_new_tokens": 8}, "seed": 3}
FROM_PROMPTS = {"model": "sft", "data": "$prompts"}


def written(folder):
    return [json.loads(line) for line in (folder / "outputs" / "generated.jsonl").read_text().splitlines()]


def test_train_prompts_are_answered_and_held_out_ones_are_not(pipeline):
    result = pipeline.run("generated", GREEDY, FROM_PROMPTS)
    assert isinstance(result.last, Succeeded)
    rows = written(result.directory)
    wanted = [row["row"] for row in pipeline.rows("$prompts") if row["split"] == "train"]
    assert [row["row"] for row in rows] == wanted
    assert {row["source"] for row in rows} == {"generated"}
    assert 0 < len(wanted) < 120


def test_limit_draws_that_many_by_seed(pipeline):
    drawn = []
    for seed in (0, 0, 1):
        folder = pipeline.prepare(f"g{len(drawn)}", {**GREEDY, "limit": 20, "seed": seed}, FROM_PROMPTS)
        run_here(folder)
        drawn.append([row["row"] for row in written(folder)])
    assert len(drawn[0]) == 20
    assert drawn[0] == drawn[1] != drawn[2]


def test_shards_together_are_the_whole(pipeline):
    whole = written(pipeline.run("whole", {**SAMPLED, "limit": 30}, FROM_PROMPTS).directory)
    parts = []
    for index in range(2):
        shard = Shard(index=index, count=2)
        folder = pipeline.prepare(f"s{index}", {**SAMPLED, "limit": 30}, FROM_PROMPTS, shard)
        run_here(folder)
        parts += written(folder)
    assert sorted(map(json.dumps, parts)) == sorted(map(json.dumps, whole))


def test_a_killed_stage_keeps_its_answers_and_ends_with_the_same_file(pipeline):
    decoding = {"temperature": 1.0, "n": 2, "max_new_tokens": 60}
    config = {**SAMPLED, "batch_size": 2, "limit": 14, "decoding": decoding}
    undisturbed = written(pipeline.run("whole", config, FROM_PROMPTS).directory)
    folder = pipeline.prepare("killed", config, FROM_PROMPTS)
    kept = folder / "checkpoints" / "a1-rows.jsonl"
    killed_when(lambda: kept.is_file() and kept.stat().st_size > 500, folder)
    assert not (folder / "outputs" / "generated.jsonl").exists()
    last = json.loads(run_here(folder)[-1])
    assert last["summary"]["resumed_rows"] > 0
    assert written(folder) == undisturbed
    places = Counter(row["group"] for row in undisturbed)
    assert max(places.values()) == 2
    assert {row["candidate"] for row in undisturbed} == {0, 1}


def test_answers_to_prompts_of_the_config_at_each_score(pipeline):
    config = {**GREEDY, "prompts": ["How can I grow tomatoes?", "Where?"], "scores": [5.0, -5.0]}
    result = pipeline.run("answers", config, {"model": "dt"})
    answers = json.loads((result.directory / "outputs" / "answers.json").read_text())
    assert [(a["prompt"], a["score"]) for a in answers] == [
        ("How can I grow tomatoes?", 5.0),
        ("How can I grow tomatoes?", -5.0),
        ("Where?", 5.0),
        ("Where?", -5.0),
    ]


def test_a_score_for_a_policy_without_scores_is_refused(pipeline):
    config = {**GREEDY, "prompts": ["Where?"], "scores": [5.0]}
    result = pipeline.run("answers", config, {"model": "sft"})
    assert isinstance(result.last, Failed)
    assert result.last.code == "no_score_format"
    assert not result.last.retryable


@pytest.mark.parametrize("score", [None, 5.0, -2.5])
def test_the_exported_policy_answers_the_same_in_plain_transformers(pipeline, score):
    """The saved folder, its chat template and generate(): nothing of Steerboard."""
    prompts = ["How can I grow tomatoes?", "What is the best way to learn Spanish on a small budget?"]
    config = {**GREEDY, "decoding": {"max_new_tokens": 40}, "prompts": prompts, "scores": [score] if score else []}
    result = pipeline.run("answers", config, {"model": "dt"})
    ours = json.loads((result.directory / "outputs" / "answers.json").read_text())

    tokenizer = AutoTokenizer.from_pretrained(pipeline.things["dt"].path)
    model = AutoModelForCausalLM.from_pretrained(pipeline.things["dt"].path)
    for prompt, answer in zip(prompts, ours, strict=True):
        asked = {"rm_score": f"{score:.2f}"} if score else {}
        ids = tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], add_generation_prompt=True, return_tensors="pt", **asked
        )["input_ids"]
        assert "<rm_score>" in tokenizer.decode(ids[0])
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=40, do_sample=False)
        text = tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True)
        assert text.strip() == answer["text"].strip()
        assert answer["text"]
