"""A provider with a protocol of its own: one module, and judges and checks ask it like any other."""

from __future__ import annotations

import pytest
from judge_world import PROJECT, JudgeWorld

from support.servers.fake_provider import MODELS, URL, use_fake_provider


def test_a_judge_and_a_check_ask_another_provider(world: JudgeWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = use_fake_provider(monkeypatch)
    there = f"{PROJECT}/endpoints/gpt-judge"
    assert world.client.patch(there, json={"base_url": URL, "api_key": "sk-fake"}).status_code == 200
    check = world.client.post(f"{there}/check").json()
    assert (check["ok"], check["models"], check["problem"]) == (True, MODELS, None)
    world.evaluation(prompts=1)
    judge = world.judged("single", name="one", concurrency=1, completion_price=1_000_000.0, max_tokens=10, budget=100)
    assert (judge["state"], judge["ok"], judge["failures"]) == ("succeeded", 2, {"timeout": 1})
    # Twice two tokens; the request that failed was not sent.
    assert (judge["cost"], judge["uncertain_cost"]) == (4, 0)
    assert [verdict["value"] for verdict in world.verdicts("one")] == [4, 4]
    assert [(request.model, request.max_tokens) for request in asked] == [("gpt-x", 10)] * 3
    assert world.server.seen == []
