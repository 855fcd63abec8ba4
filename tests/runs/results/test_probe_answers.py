"""Answers to probe prompts are read over HTTP during their run, and after it."""

from __future__ import annotations

import dataclasses
import uuid
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from steerboard.platform.database import transaction
from steerboard.runs.tables import Run
from steerboard_contracts.stage.events import Probed
from steerboard_contracts.watching.probing import ProbeAnswer, ProbePrompt
from support.rows.run_world import World

API = "/api/v1/projects/default"
CONFIG = {"run": "train", "method": "decision_transformer", "probe": {"held_out": 1}}


def probed(step: int, text: str, prompt: str = "Why?") -> Probed:
    return Probed.model_validate(
        {
            "step": step,
            "condition": 5 if step else None,
            "prompts": [ProbePrompt(row=3, messages=[{"role": "user", "content": prompt}])],
            "answers": [ProbeAnswer(text=text, tokens=2, finished=True)],
        }
    )


@pytest.fixture
def read(client: TestClient) -> Any:
    def get(run: uuid.UUID, status: int = 200) -> Any:
        answer = client.get(f"{API}/runs/{run}/probes")
        assert answer.status_code == status, answer.text
        return answer.json()

    return get


def test_answers_are_there_while_the_run_goes_on_and_a_replayed_step_overwrites_them(world: World, read: Any) -> None:
    run = world.create("train", config=CONFIG)
    assert read(run) == {"prompts": [], "steps": []}
    claim = world.claim()
    assert claim is not None
    world.emit(claim, probed(0, "Be\x00fore"), probed(2, "Then"), probed(4, "Late"))
    world.emit(claim, probed(2, "Then again"))
    probes = read(run)
    assert probes["prompts"] == [{"row": 3, "messages": [{"role": "user", "content": "Why?"}]}]
    texts = [(step["step"], step["condition"], step["answers"][0]["text"]) for step in probes["steps"]]
    assert texts == [(0, None, "Be\ufffdfore"), (2, 5.0, "Then again"), (4, 5.0, "Late")]
    # A later attempt may have other prompts.
    with transaction(world.sessions) as session:
        session.execute(update(Run).where(Run.id == run).values(attempt=2))
    world.emit(dataclasses.replace(claim, attempt=2), probed(0, "Other", prompt="How?"))
    assert [step["answers"][0]["text"] for step in read(run)["steps"]] == ["Other"]


def test_a_run_that_reuses_another_has_its_answers_and_one_without_a_probe_none(world: World, read: Any) -> None:
    run = world.create("train", config=CONFIG)
    claim = world.claim()
    assert claim is not None
    world.emit(claim, probed(0, "Before"))
    other = world.create("again", config=CONFIG)
    with transaction(world.sessions) as session:
        session.execute(update(Run).where(Run.id == other).values(reused_from_id=run))
    assert read(other) == read(run)
    assert "probe" in read(world.create("mixture"), 404)["hint"]
