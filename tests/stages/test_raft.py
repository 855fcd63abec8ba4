"""RAFT from sampled answers to a policy, each stage by hand."""

from __future__ import annotations

import json

from steerboard_contracts.stage.events import Succeeded

TRAIN = {"run": "train", "method": "raft", "batch": 8, "max_steps": 4, "lr": 1e-3, "checkpoint_every": 0}


def test_the_best_of_several_answers_are_learned(pipeline):
    decoding = {"temperature": 1.0, "n": 4, "max_new_tokens": 8}
    generate = {"run": "generate", "decoding": decoding, "limit": 24}
    stages = (
        ("answers", generate, {"model": "sft", "data": "$prompts"}),
        ("scored", {"run": "score"}, {"data": "answers", "reward": "reward"}),
        ("best", {"run": "select"}, {"data.0": "scored"}),
        ("raft", TRAIN, {"model": "sft", "data": "best"}),
    )
    for name, config, inputs in stages:
        result = pipeline.run(name, config, inputs)
        assert isinstance(result.last, Succeeded), result.last
    scored, best = pipeline.rows("scored"), pipeline.rows("best")
    rewards = {(row["group"], row["candidate"]): row["reward"] for row in scored}
    assert 1 < len(best) <= 24
    for row in best:
        others = [reward for (group, _), reward in rewards.items() if group == row["group"]]
        assert rewards[row["group"], row["candidate"]] == max(others) > min(others)
    info = json.loads((result.directory / result.last.outputs[0].path / "steerboard.json").read_text())
    assert (info["role"], info["method"]) == ("policy", "raft")
    figures = json.loads((pipeline.directory / "best" / "outputs" / "selection.json").read_text())
    curve = [point["score"]["value"] for point in figures["curve"]]
    assert curve == sorted(curve)
    assert figures["rewards"][0]["best"]["value"] > figures["rewards"][0]["mean"]["value"]


def test_parts_of_the_prompts_share_none_and_are_all_together(pipeline):
    rows = [{"prompt": f"What is {number % 40}?"} for number in range(80)]
    pipeline.dataset("$twice", "prompts", rows)
    parts = []
    for number in (1, 2, 3):
        config = {"run": "generate", "split": "all", "decoding": {"max_new_tokens": 1}}
        config["portion"] = {"number": number, "of": 3}
        folder = pipeline.run(f"part-{number}", config, {"model": "sft", "data": "$twice"}).directory
        lines = (folder / "checkpoints" / "a1-rows.jsonl").read_text().splitlines()
        parts.append({json.loads(line)["row"] for line in lines if line})
    assert sorted(row for part in parts for row in part) == list(range(80))
    asked = [{rows[row]["prompt"] for row in part} for part in parts]
    assert all(len(part) > 5 for part in asked)
    assert sum(map(len, asked)) == 40, "equal prompts are in the same part"
