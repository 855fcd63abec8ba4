from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from playground_world import PlaygroundWorld
from safetensors.torch import load_file, save_file
from sqlalchemy import func, select

from steerboard.accounts.tables import AuditEntry
from steerboard.platform.events.tables import Event
from steerboard.registry.tables import Model
from steerboard_workers.interactive import curves
from steerboard_workers.interactive.worker import InteractiveWorker
from support.patience import wait_until

SHORT = {"max_new_tokens": 8}


def ask(world: PlaygroundWorld, status: int = 201, **fields: Any) -> Any:
    body = {"model": "dt", "reward": "reward", "data": "few", "split": "all", "decoding": SHORT, **fields}
    return world.post("curves", body, status=status)


def events(world: PlaygroundWorld) -> list[dict[str, Any]]:
    with world.sessions() as session:
        rows = session.scalars(select(Event).where(Event.type == "playground.curve").order_by(Event.id))
        return [event.payload for event in rows]


def test_a_curve_shows_requested_scores_against_achieved_rewards(
    world: PlaygroundWorld, worker: InteractiveWorker
) -> None:
    world.dataset("few", 12)
    with world.sessions() as session:
        model = session.scalars(select(Model).where(Model.name == "dt")).one()
        normaliser = {**model.info["normaliser"], "reward_model_hash": world.reward_hash}
        model.info = {**model.info, "normaliser": normaliser}
        session.commit()
    made = ask(world, scores=[5, -5, 0, 7], limit=10)
    assert (made["state"], made["total"], made["scores"]) == ("queued", 40, [-5, 0, 5, 7])
    done = world.finish_curve(made)
    assert (done["state"], done["done"], done["error"]) == ("succeeded", 40, None)
    assert [point["score_text"] for point in done["points"]] == ["-5.00", "0.00", "5.00", "5.00"]
    for point in done["points"]:
        assert point["n"] == 10
        assert point["mean_tokens"] == 8
        assert point["low"] <= point["mean"] <= point["high"]
        assert point["mean_z"] == pytest.approx((point["mean"] - 1) / 2)
    assert done["points"][2]["mean"] == done["points"][3]["mean"], "7 is written as 5, the limit"
    assert done["points"][0]["mean"] != done["points"][1]["mean"]
    assert -1 <= done["spearman"] <= 1
    payloads = events(world)
    assert [p["done"] for p in payloads] == [0, 0, 10, 20, 30, 40]
    assert payloads[-1] == {"id": made["id"], "state": "succeeded", "done": 40, "total": 40}
    assert [c["id"] for c in world.get("curves", model="dt")["items"]] == [made["id"]]
    assert world.get("curves", model="sft")["items"] == []


def test_a_comparison_goes_before_the_rest_of_a_curve(
    world: PlaygroundWorld, worker: InteractiveWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curves, "ANSWER_BATCH", 2)
    world.dataset("few", 60)
    curve = ask(world, limit=60, decoding={"max_new_tokens": 40})
    wait_until(lambda: world.get(f"curves/{curve['id']}")["done"] > 0)
    made = world.compare({"model": "dt", "score": 3, "decoding": SHORT}, reward="reward")
    assert world.finish(made)["columns"][0]["state"] == "succeeded"
    between = world.get(f"curves/{curve['id']}")
    assert (between["state"], between["done"] < between["total"]) == ("running", True)
    cancelled = world.post(f"curves/{curve['id']}/cancel", status=200)
    assert cancelled["state"] == "cancelled"
    world.finish(world.compare({"model": "dt", "score": 4, "decoding": SHORT}))
    assert world.get(f"curves/{curve['id']}") == cancelled
    assert events(world)[-1]["state"] == "cancelled"
    assert world.post(f"curves/{curve['id']}/cancel", status=409)["code"] == "already_ended"


def test_a_curve_without_prompts_or_scores_is_refused(world: PlaygroundWorld) -> None:
    world.dataset("few", 3)
    assert ask(world, 422, data=None)["code"] == "missing_input"
    assert ask(world, 422, model="sft")["code"] == "no_score_format"
    assert ask(world, 422, reward="dt")["code"] == "wrong_role"
    assert ask(world, 422, scores=[1, 1])["code"] == "invalid_request"
    assert ask(world, 404, data="nothing")["code"] == "not_found"
    with world.sessions() as session:
        assert session.scalar(select(func.count()).where(AuditEntry.action == "playground.curve")) == 0


def test_a_viewer_cannot_start_a_curve(world: PlaygroundWorld) -> None:
    body = {"model": "dt", "reward": "reward"}
    refused = world.post("curves", body, status=403, headers=world.limited_token("read", "write"))
    assert refused["code"] == "missing_scope"


def test_a_reward_that_is_no_number_fails_the_curve_and_not_the_worker(
    world: PlaygroundWorld, worker: InteractiveWorker, tmp_path: Path
) -> None:
    world.dataset("few", 3)
    shutil.copytree(world.folders / "reward", tmp_path / "nan")
    weights = load_file(tmp_path / "nan" / "model.safetensors")
    weights["score.weight"].fill_(float("nan"))
    save_file(weights, tmp_path / "nan" / "model.safetensors", metadata={"format": "pt"})
    world.register("nan", tmp_path / "nan")
    failed = world.finish_curve(ask(world, reward="nan"))
    assert (failed["state"], failed["error"]["code"]) == ("failed", "non_finite_reward")
    assert world.finish_curve(ask(world))["state"] == "succeeded"


def test_a_curve_of_several_attributes_is_along_the_one_that_differs(
    world: PlaygroundWorld, worker: InteractiveWorker
) -> None:
    world.register("steered", "steered")
    world.dataset("few", 3)
    asked = [f"helpfulness:{value},verbosity:1" for value in (4, 0, 2)]
    done = world.finish_curve(ask(world, model="steered", scores=asked, limit=3))
    assert [point["score_text"] for point in done["points"]] == sorted(asked)
    assert done["scores"] == sorted(asked)
    assert -1 <= done["spearman"] <= 1
    assert ask(world, 422, model="steered", scores=["helpfulness:1", "verbosity:1"])["code"] == "invalid_request"
    assert ask(world, 422, model="steered", scores=[1, 2])["code"] == "unknown_attribute"
