"""What an online run samples is read over HTTP while it runs: groups by step and place, replayed ones overwritten."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from fastapi.testclient import TestClient

from steerboard_contracts.online.answer_groups import AnswerGroup, GroupAnswer
from steerboard_contracts.stage.events import Sampled
from support.rows.run_world import World

API = "/api/v1/projects/default"
CONFIG = {"run": "train", "method": "grpo", "inspect_groups": 2}
HOSTILE = "<script>alert(1)</script>\u0000"


def sampled(step: int, place: int, text: str, tied: bool = False) -> Sampled:
    answer = GroupAnswer(
        n=1, text=text, tokens=2, finished=False, reward=0.5, sources={"regex": 1.0}, advantage=-0.5, kl=None
    )
    group = AnswerGroup(place=place, row=7, prompt="Why?", sampled=1, tied=tied, answers=[answer])
    return Sampled(step=step, group=group)


@pytest.fixture
def read(client: TestClient) -> Any:
    def get(run: uuid.UUID, rest: str = "", status: int = 200) -> Any:
        answer = client.get(f"{API}/runs/{run}/groups{rest}")
        assert answer.status_code == status, answer.text
        return answer.json()

    return get


def test_groups_are_there_while_the_run_goes_on_and_a_replayed_step_overwrites_them(world: World, read: Any) -> None:
    run = world.create("train", config=CONFIG)
    assert read(run) == {"steps": []}
    claim = world.claim()
    world.emit(claim, sampled(1, 0, "old"), sampled(1, 1, "b", tied=True), sampled(5, 0, "c"))
    world.emit(claim, sampled(1, 0, HOSTILE))
    assert read(run)["steps"] == [{"step": 1, "groups": 2, "tied": 1}, {"step": 5, "groups": 1, "tied": 0}]
    (answer,) = read(run, "/1/0")["answers"]
    assert answer["text"].startswith("<script>")
    assert (answer["reward"], answer["advantage"], answer["kl"], answer["finished"]) == (0.5, -0.5, None, False)


def test_a_group_that_was_not_kept_is_not_found(world: World, read: Any) -> None:
    run = world.create("train", config=CONFIG)
    world.emit(world.claim(), sampled(1, 0, "a"))
    assert "no group 1 of step 1" in read(run, "/1/1", 404)["detail"]
    without = world.create("other", config={**CONFIG, "inspect_groups": 0})
    assert "inspect_groups" in read(without, "", 404)["hint"]
