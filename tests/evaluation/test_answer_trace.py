"""The trace of an answer: what the model was given, how it answered, and how the answer was judged."""

from __future__ import annotations

import json

from evaluation_world import SHORT, EvaluationWorld


def test_an_answer_shows_its_rendered_prompt_tokens_end_and_reward(world: EvaluationWorld) -> None:
    world.evaluate("eval", {"model": "sft", "decoding": SHORT}, rewards=["reward"], seed=7)
    world.work_off()
    trace = world.get("evaluations/eval/items/0/answers/sft")
    assert (trace["model"], trace["engine"], trace["seed"], trace["temperature"]) == ("sft", "transformers", 7, 0.0)
    assert trace["decoding"]["max_new_tokens"] == 6
    first, second = trace["turns"]
    assert first["messages"] == [{"role": "user", "content": "say red"}]
    # As the model's template writes it, the beginning and what an answer follows included.
    assert "say red" in first["prompt"]
    assert first["prompt"] != "say red"
    assert first["answer"] in second["prompt"]
    assert "say blue" in second["prompt"]
    assert 0 < first["prompt_tokens"] < second["prompt_tokens"]
    assert 0 < first["tokens"] <= 6
    assert first["finished"] in (True, False)
    assert first["seconds"] is None
    (reward,) = trace["rewards"]
    assert reward["source"] == "reward"
    assert trace["verdicts"] == []


def test_what_was_not_recorded_is_null(world: EvaluationWorld) -> None:
    world.evaluate("eval", entrants=[])
    ids = [prompt["question_id"] for prompt in world.get("evaluations/eval/prompts")["items"]]
    rows = [{"question_id": id_, "model_id": "old", "choices": [{"index": 0, "turns": ["a", "b"]}]} for id_ in ids]
    file = "".join(json.dumps(row) + "\n" for row in rows).encode()
    world.post("evaluations/eval/answers", None, files={"file": ("a.jsonl", file)})
    trace = world.get("evaluations/eval/items/1/answers/old")
    assert [trace[name] for name in ("model", "engine", "seed", "temperature")] == [None] * 4
    unknown = {"prompt": None, "prompt_tokens": None, "tokens": None, "finished": None, "seconds": None}
    assert {name: trace["turns"][0][name] for name in unknown} == unknown
    assert trace["turns"][1]["answer"] == "b"


def test_an_answer_that_there_is_not_is_not_found(world: EvaluationWorld) -> None:
    world.evaluate("eval", {"model": "sft", "decoding": SHORT})
    assert world.get("evaluations/eval/items/0/answers/sft", status=404)["code"] == "unknown_answer"
    assert world.get("evaluations/eval/items/0/answers/nobody", status=404)["code"] == "unknown_entrant"
