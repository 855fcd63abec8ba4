"""Runs are paused, changed and watched through the platform: what is asked, what takes effect, and who is notified."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select, text

from steerboard.notices.tables import NoticeDelivery, NoticeRule
from steerboard.platform.database import transaction
from steerboard.runs.state import attempt_outcomes, claims
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.state.claims import Claim
from steerboard.runs.tables import Run
from steerboard_contracts.stage.events import Changed, HealthFound, Paused
from steerboard_contracts.watching.control import Change, Control
from support.rows.run_world import World

API = "/api/v1/projects/default"
CONFIG = {"run": "train", "method": "grpo"}
FINDING = HealthFound(step=7, rule=0, kind="kl", action="note", reason="KL above 18 nats, once: 20")


@pytest.fixture
def ask(client: TestClient) -> Any:
    def post(run: uuid.UUID, what: str, status: int = 200, **body: Any) -> Any:
        answer = client.post(f"{API}/runs/{run}/{what}", json=body or None)
        assert answer.status_code == status, answer.text
        return answer.json()

    return post


def control(world: World, claim: Claim) -> Control:
    with transaction(world.sessions) as session:
        return claims.wishes_of(session, claim).control


def end(world: World, claim: Claim, how: Any) -> None:
    with transaction(world.sessions) as session:
        run = claims.fenced(session, claim)
        if isinstance(how, Paused):
            attempt_outcomes.pause(session, run, how, 2.5)
        else:
            attempt_outcomes.fail(session, run, how, 1.0, 0.0)


def test_a_running_run_pauses_and_goes_on_when_it_is_resumed(world: World, ask: Any) -> None:
    run = world.create("train", config=CONFIG)
    claim = world.claim()
    assert ask(run, "pause")["state"] == "running"
    assert ask(run, "pause")["reason"].startswith("being paused by ")
    assert control(world, claim).pause
    end(world, claim, Paused(step=4))
    paused = world.get(run)
    assert (paused.state, paused.reason_code, paused.ended_at, paused.lease_owner) == ("paused", "paused", None, None)
    assert paused.reason.endswith(" after step 4")
    assert paused.device_seconds == 2.5
    resumed = ask(run, "resume")
    assert (resumed["state"], resumed["pause_requested_at"]) == ("queued", None)
    again = world.claim()
    assert again.attempt == 2
    assert not control(world, again).pause


def test_pauses_after_the_start_are_told_apart_from_the_time_a_run_takes(world: World, ask: Any) -> None:
    run = world.create("train", config=CONFIG)
    ask(run, "pause")  # before its start: no part of the time since then
    never = ask(run, "resume")
    assert (never["paused_seconds"], never["paused_since"]) == (0, None)
    end(world, world.claim(), Paused(step=4))
    with transaction(world.sessions) as session:
        for table, column in (("runs", "started_at"), ("run_transitions", "created_at")):
            session.execute(text(f"UPDATE {table} SET {column} = {column} - interval '40 seconds'"))
    paused = ask(run, "change", config={"kl_weight": 0.5})
    assert (paused["paused_seconds"], paused["paused_since"]) == (0, paused["timeline"][-1]["created_at"])
    resumed = ask(run, "resume")
    assert 40 <= resumed["paused_seconds"] < 100
    assert resumed["paused_since"] is None


def test_a_paused_run_can_be_cancelled_and_a_queued_one_pauses_at_once(world: World, ask: Any) -> None:
    run = world.create("train", config=CONFIG)
    assert ask(run, "pause")["state"] == "paused"
    assert world.claim() is None
    assert ask(run, "cancel")["state"] == "cancelled"
    assert ask(run, "pause", 409)["code"] == "run_not_pausable"
    assert ask(world.create("mix"), "pause", 409)["detail"].endswith("it is of the kind mix")


def test_an_attempt_that_fails_while_it_is_to_pause_is_not_tried_again_before_somebody_resumes_it(
    world: World, ask: Any
) -> None:
    run = world.create("train", config=CONFIG)
    claim = world.claim()
    ask(run, "pause")
    end(world, claim, Failure("worker_lost", "It was lost.", retryable=True))
    assert world.state(run) == "paused"


def test_a_change_waits_for_its_step_and_keeps_it(world: World, ask: Any, client: TestClient) -> None:
    run = world.create("train", config=CONFIG)
    claim = world.claim()
    told = ask(run, "change", config={"lr": 2e-6, "kl_weight": 0.5})
    assert told["changeable"] == {"lr": 2e-6, "kl_weight": 0.5}
    assert [(change["step"], change["values"]) for change in told["changes"]] == [
        (None, {"lr": 2e-6, "kl_weight": 0.5})
    ]
    assert told["config"]["lr"] != 2e-6  # what the run was started with
    asked = Change(number=1, values={"lr": 2e-6, "kl_weight": 0.5})
    assert control(world, claim).changes == [asked]
    world.emit(claim, Changed(number=1, step=9, values=asked.values))
    assert control(world, claim).changes == [asked.model_copy(update={"step": 9})]
    ask(run, "change", config={"lr": 1e-6})
    assert [(change.number, change.step) for change in control(world, claim).changes] == [(1, 9), (2, None)]
    assert client.get(f"{API}/runs/{run}").json()["changes"][0]["step"] == 9


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"batch": 4}, "batch cannot change while run train trains"),
        ({"lr": -1}, "the values do not fit the run"),
        ({"kl_weight": 0}, "kl_weight cannot change to or from 0: with 0 the run has no reference"),
    ],
)
def test_what_cannot_change_is_refused_with_its_field(world: World, ask: Any, config: Any, said: str) -> None:
    run = world.create("train", config=CONFIG)
    refused = ask(run, "change", 422, config=config)
    assert (refused["code"], refused["detail"]) == ("setting_not_changeable", said)
    assert refused["errors"][0]["location"].startswith(f"config.{next(iter(config))}")
    assert world.get(run).changes == []


def test_a_changed_run_is_no_source_for_equal_ones(world: World, ask: Any) -> None:
    run = world.create("train", config={**CONFIG, "rules": []}, reuse=True)
    claim = world.claim()
    ask(run, "change", config={"lr": 2e-6})
    with transaction(world.sessions) as session:
        attempt_outcomes.succeed(session, claims.fenced(session, claim), {}, 1.0)
    assert world.get(run).cache_key is None
    equal = world.create("again", config={**CONFIG, "rules": []}, reuse=True)
    assert world.claim() is not None
    assert world.state(equal) == "running"


def test_a_health_rule_is_told_once_to_the_page_and_to_webhooks(world: World, client: TestClient) -> None:
    with transaction(world.sessions) as session:
        events = ["run.health", "run.paused"]
        url = "https://example.org"
        made = {"project_id": world.project.id, "name": "w", "url": url, "events": events, "secret_sealed": "x"}
        session.add(NoticeRule(**made, active=True))
    run = world.create("train", config=CONFIG)
    claim = world.claim()
    world.emit(claim, FINDING, FINDING)
    world.emit(claim, FINDING)
    (finding,) = client.get(f"{API}/runs/{run}").json()["findings"]
    assert (finding["step"], finding["kind"], finding["action"]) == (7, "kl", "note")
    end(world, claim, Paused(step=8, by_rule="kl", reason="KL above 18 nats"))
    assert world.get(run).reason_code == "health_rule"
    with transaction(world.sessions) as session:
        sent = session.scalars(select(NoticeDelivery).order_by(NoticeDelivery.event)).all()
        assert [delivery.event for delivery in sent] == ["run.health", "run.paused"]
        assert sent[0].payload["data"]["finding"]["reason"] == FINDING.reason
        assert sent[1].payload["data"]["state"] == "paused"
        assert session.scalar(select(func.count()).select_from(Run)) == 1
