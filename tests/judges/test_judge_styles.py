"""Every style of judge from the API to its verdicts, against a server that answers as each test wants."""

from __future__ import annotations

import pytest
from judge_world import JudgeWorld, completion, saying

from support.servers.other_server import Answer, Seen


def test_single_answers_are_graded_in_both_turns(world: JudgeWorld) -> None:
    world.evaluation(turns=2)
    world.server.answer = lambda seen: completion(
        "Rating: [[9.5]]" if "anna says" in seen.json["messages"][1]["content"] else "Rating: [[4]]"
    )
    judge = world.judged("single", name="one")
    assert (judge["state"], judge["verdicts"], judge["ok"], judge["requests"], judge["cached"]) == (
        "succeeded",
        8,
        8,
        8,
        0,
    )
    assert (judge["prompt_tokens"], judge["completion_tokens"]) == (800, 56)
    assert (judge["valid"], judge["unparsed_rate"], judge["failures"]) == (True, 0.0, {})
    assert (judge["model"], judge["family"], judge["endpoint"]) == ("gpt-x", "gpt", "gpt-judge")
    values = {(row["a"], row["position"], row["turn"]): row["value"] for row in world.verdicts("one")}
    assert values == {
        (who, position, turn): score
        for who, score in (("anna", 9.5), ("bert", 4.0))
        for position in (0, 1)
        for turn in (1, 2)
    }
    assert {row["raw"] for row in world.verdicts("one", position=1)} == {"Rating: [[9.5]]", "Rating: [[4]]"}
    run = world.run(judge["run"]["id"])
    assert (run.kind, run.device_seconds, run.summary and run.summary["verdicts"]) == ("judge", 0.0, {"ok": 8})


def test_a_multi_verdict_is_one_request_with_a_row_for_everybody(world: JudgeWorld) -> None:
    world.evaluation(entrants=("anna", "bert", "carl"), prompts=3)
    world.server.answer = saying("Assistant A: 9\nAssistant B: 5\nAssistant C: nine")
    judge = world.judged("multi", name="all")
    assert (judge["requests"], judge["verdicts"], judge["ok"], judge["unparsed"]) == (3, 9, 6, 3)
    assert (judge["valid"], judge["unparsed_rate"]) == (False, pytest.approx(1 / 3))
    for position in range(3):
        rows = {row["a"]: row for row in world.verdicts("all", position=position)}
        shown = world.server.seen[[f"question {position}?" in prompt for prompt in world.prompts_seen].index(True)]
        order = sorted(rows, key=lambda who: shown.json["messages"][1]["content"].index(f"{who} says"))
        assert [rows[who]["value"] for who in order] == [9.0, 5.0, None]
        assert [rows[who]["a_first"] for who in order] == [True, False, False]


def test_pairs_are_judged_in_both_orders_and_a_judge_that_likes_the_first_flips(world: JudgeWorld) -> None:
    world.evaluation(prompts=1)
    world.server.answer = saying("[[A]]")
    judge = world.judged("pairwise", name="pairs")
    assert judge["requests"] == 2
    assert [(row["a"], row["b"], row["a_first"], row["value"]) for row in world.verdicts("pairs")] in (
        [("anna", "bert", False, 0.0), ("anna", "bert", True, 1.0)],
        [("anna", "bert", True, 1.0), ("anna", "bert", False, 0.0)],
    )


def test_alpaca_eval_takes_weights_where_the_endpoint_has_them_and_the_letter_where_not(world: JudgeWorld) -> None:
    world.evaluation(prompts=6)
    weights = {"content": [{"top_logprobs": [{"token": "m", "logprob": -1.0}, {"token": "M", "logprob": -1.0}]}]}
    world.server.answer = lambda _: completion("M", logprobs=weights)
    judge = world.judged("alpaca_eval", name="weighted", baseline="bert")
    assert (judge["requests"], judge["ok"]) == (6, 6)
    assert {row["value"] for row in world.verdicts("weighted")} == {0.5}

    def without_weights(seen: Seen) -> Answer:
        if "logprobs" in seen.json:
            return Answer.json({"error": {"message": "logprobs are not supported"}}, 400)
        prompt = seen.json["messages"][1]["content"]
        return completion("m" if "anna says" in prompt[: prompt.index("<answer_M>")] else "M")

    world.server.answer = without_weights
    judge = world.judged("alpaca_eval", name="worded", baseline="bert", criteria="wit", concurrency=1)
    assert (judge["ok"], judge["failures"]) == (6, {"http_400": 1})
    assert {row["value"] for row in world.verdicts("worded")} == {1.0}
    assert {(row["a"], row["b"]) for row in world.verdicts("worded")} == {("anna", "bert")}


def test_arena_hard_keeps_value_and_weight(world: JudgeWorld) -> None:
    world.evaluation(prompts=1)
    world.server.answer = lambda seen: completion(
        "[[A>>B]]" if "anna says" in seen.json["messages"][1]["content"].split("Assistant B")[0] else "[[B>A]]"
    )
    world.judged("arena_hard", name="arena", baseline="bert")
    verdicts = {(row["a_first"], row["value"], row["weight"]) for row in world.verdicts("arena")}
    assert verdicts == {(True, 1.0, 3), (False, 1.0, 1)}
