"""A policy that learns from an LLM judge of its own answers, from the launch to the chart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from evaluation_world import WORDS, EvaluationWorld
from sqlalchemy import select

from steerboard.evaluation.judge_tables import Judge
from steerboard.evaluation.judges.schemas import JudgeSettings
from steerboard.evaluation.reward_judges.tables import RewardJudge
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.database import transaction
from steerboard.registry.tables import Endpoint
from support.servers.other_server import Answer, OtherServer, Seen, other_server

CONFIG = {
    "run": "train",
    "method": "rloo",
    "batch": 2,
    "answers": 3,
    "epochs": 2,
    "max_steps": 3,
    "max_new_tokens": 4,
    "max_length": 96,
    "evaluate_rows": 2,
    "max_skipped": 1.0,
}


@pytest.fixture
def server(world: EvaluationWorld) -> Iterator[OtherServer]:
    world.settings.allowed_private = "127.0.0.1"
    world.dataset("asks", [{"prompt": f"say {one} {other}"} for one in WORDS for other in WORDS])
    world.post("evaluations", {"name": "eval", "prompts": {"set": "two-turns"}, "entrants": []})
    with other_server() as server:
        world.post("endpoints", {"name": "api", "base_url": f"{server.url}/v1", "model": "gpt-x"})
        server.answer = by_length
        yield server


def by_length(seen: Seen) -> Answer:
    """Rates an answer by how many bytes it was sent."""
    score = 1 + len(seen.json["messages"][1]["content"]) % 10
    message = {"role": "assistant", "content": f"Rating: [[{score}]]"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return Answer.json({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage})


def judge(world: EvaluationWorld, style: str = "single", evaluation: str = "eval", **settings: Any) -> None:
    with transaction(world.sessions) as session:
        judged = session.scalars(select(Evaluation).where(Evaluation.name == evaluation)).one()
        endpoint = session.scalars(select(Endpoint)).one()
        kept = JudgeSettings(prompt_price=10.0, completion_price=100.0, **settings).model_dump(mode="json")
        who = {"name": style, "style": style, "model": "gpt-x", "endpoint_id": endpoint.id}
        session.add(Judge(evaluation_id=judged.id, **who, settings=kept, created_by="t"))


def body(*judges: dict[str, Any], config_rules: list[dict[str, Any]] | None = None, **config: Any) -> dict[str, Any]:
    rules = config_rules or [{"kind": "judge", **rule} for rule in judges]
    given = {**CONFIG, "rules": rules, **config}
    return {"config": given, "inputs": {"model": "sft", "data": "asks"}}


def charted(world: EvaluationWorld, run: str, name: str) -> list[float]:
    return [point["value"] for curve in world.get(f"runs/{run}/metrics", name=name) for point in curve["points"]]


def test_a_launch_is_refused_until_the_judge_is_calibrated_or_it_says_so(
    world: EvaluationWorld, server: OtherServer
) -> None:
    judge(world)
    refused = world.post("runs", body({"judge": "eval/single"}), status=422)
    assert refused["code"] == "judge_not_calibrated"
    (fault,) = refused["errors"]
    assert fault["location"] == "config.rules.0.judge"
    assert "has not been calibrated" in fault["message"]
    assert "uncalibrated: true" in fault["message"]
    unknown = world.post("runs", body({"judge": "eval/nobody"}), status=422)
    assert unknown["code"] == "unknown_judge"
    judge(world, "multi")
    rule = {"judge": "eval/multi", "uncalibrated": True}
    alone = world.post("runs", body(rule, method="reinforce_pp", answers=1), status=422)
    assert "needs `answers` of 2 or more" in alone["errors"][0]["message"]
    made = world.post("runs", body(rule))
    assert made["config"]["rules"][0]["pinned"]["style"] == "multi"
    assert server.seen == []


def test_a_policy_learns_from_a_judge_and_the_run_has_its_price(world: EvaluationWorld, server: OtherServer) -> None:
    judge(world)
    made = world.post("runs", body({"judge": "eval/single", "uncalibrated": True}, judge_budget=5.0))
    foreseen = made["warnings"]
    run = world.supervise()
    assert run.state == "succeeded", run.error
    for warnings in (foreseen, world.get(f"runs/{made['id']}")["warnings"]):
        (doubt,) = [warning for warning in warnings if warning["code"] == "uncalibrated_judge"]
        assert doubt["level"] == "serious"
        assert doubt["message"].startswith("Judge eval/single rewards the answers, but it has not been calibrated")
    rewards = charted(world, made["id"], "reward_judge")
    assert len(rewards) == 3
    assert all(0 <= reward <= 1 for reward in rewards)
    assert charted(world, made["id"], "eval_reward_judge")
    with transaction(world.sessions) as session:
        paid = session.scalars(select(RewardJudge)).one()
        assert paid.requests == len(server.seen) > 10
        assert paid.cost == pytest.approx(len(server.seen) * 0.002)
    requests = charted(world, made["id"], "judge_requests")
    assert requests == sorted(requests)
    assert charted(world, made["id"], "judge_cost")[-1] == pytest.approx(requests[-1] * 0.002)
    asked = len(server.seen)
    again = world.post("runs", body({"judge": "eval/single", "uncalibrated": True}) | {"reuse": False})
    world.supervise()
    assert charted(world, again["id"], "reward_judge") == rewards
    assert len(server.seen) == asked
    (model,) = [output["label"] for output in world.get(f"runs/{made['id']}")["outputs"] if output["name"] == "model"]
    world.evaluate("after", {"model": "sft"}, {"model": model})
    judge(world, "pairwise", evaluation="after")
    (report,) = world.get("evaluations/after/report")["judges"]
    assert report["trained"] == [model]


def test_a_run_that_would_overspend_fails_and_resumes_with_a_larger_budget(
    world: EvaluationWorld, server: OtherServer
) -> None:
    judge(world, max_tokens=100)
    made = world.post("runs", body({"judge": "eval/single", "uncalibrated": True}, judge_budget=0.02))
    run = world.supervise()
    assert (run.state, run.error["code"]) == ("failed", "budget_reached")  # type: ignore[index]
    assert "larger `judge_budget`" in run.error["hint"]  # type: ignore[index]
    before = len(server.seen)
    assert before * 0.002 <= 0.02
    world.post(f"runs/{made['id']}/resume", {"config": {"judge_budget": 5.0}}, status=200)
    assert world.supervise().state == "succeeded"
    with transaction(world.sessions) as session:
        assert session.scalars(select(RewardJudge)).one().requests == len(server.seen)


def test_a_judge_that_only_watches_is_charted_and_changes_nothing(world: EvaluationWorld, server: OtherServer) -> None:
    judge(world)
    reward = {"kind": "regex", "pattern": "a"}
    plain = world.post("runs", body(config_rules=[reward]))
    world.supervise()
    assert server.seen == []
    watcher = {"kind": "judge", "judge": "eval/single", "weight": 0, "every": 2, "share": 0.5, "uncalibrated": True}
    watched = world.post("runs", body(config_rules=[reward, watcher]))
    assert world.supervise().state == "succeeded"
    assert charted(world, watched["id"], "reward") == charted(world, plain["id"], "reward")
    assert charted(world, watched["id"], "loss") == charted(world, plain["id"], "loss")
    (curve,) = world.get(f"runs/{watched['id']}/metrics", name="independent_reward")
    assert [point["step"] for point in curve["points"]] == [1, 3]
    held_out = 2 * len(charted(world, watched["id"], "eval_independent_reward"))
    assert len(server.seen) <= 6 + held_out  # half of six answers, twice


def test_a_judge_ranks_the_answers_of_each_group_and_not_those_that_stand_alone(
    world: EvaluationWorld, server: OtherServer
) -> None:
    judge(world, "multi")
    ranking = "\n".join(f"Assistant {letter}: {score}" for letter, score in zip("ABC", (2, 9, 5), strict=True))
    message = {"role": "assistant", "content": ranking}
    server.answer = lambda _: Answer.json({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    made = world.post("runs", body({"judge": "eval/multi", "uncalibrated": True}))
    run = world.supervise()
    assert run.state == "succeeded", run.error
    assert charted(world, made["id"], "reward_judge") == pytest.approx([0.5] * 3)
    assert len(server.seen) == 6  # two prompts a step
    assert charted(world, made["id"], "eval_reward_judge") == []


def test_judges_that_may_reward_are_found_by_name_with_what_is_doubted(
    world: EvaluationWorld, server: OtherServer
) -> None:
    judge(world)
    judge(world, "multi")
    judge(world, "alpaca_eval")  # compares with a baseline
    found = world.get("reward-judges")["items"]
    assert [one["name"] for one in found] == ["eval/multi", "eval/single"]
    assert {one["model"] for one in found} == {"gpt-x"}
    assert found[0]["calibration"] is None
    assert found[0]["doubt"].startswith("it has not been calibrated")
    assert [one["name"] for one in world.get("reward-judges", name="VAL/SIN")["items"]] == ["eval/single"]
    first = world.get("reward-judges", limit=1)
    following = world.get("reward-judges", limit=1, cursor=first["next"])
    assert [one["name"] for one in following["items"]] == ["eval/single"]
    assert following["next"] is None
