"""A run equal to a finished one takes over its outputs."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from sqlalchemy import select

from steerboard.platform.database import transaction
from steerboard.runs import inputs
from steerboard.runs.reuse import code_version
from steerboard.runs.state import attempt_outcomes, sweeper
from steerboard.runs.state.claims import Claim
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.tables import Run, RunOutput
from support.rows.run_world import World

SFT = {"run": "train", "method": "sft", "lr": 0.001}


def train(world: World, name: str = "sft", **changes: Any) -> uuid.UUID:
    """An SFT run on the world's one dataset (or the given one); reuse is on."""
    data = changes.pop("data", None) or InputRef(dataset=changes.pop("dataset"))
    options = {"reuse": changes.pop("reuse", True)}
    return world.create(name, config={**SFT, **changes}, inputs={"data": data}, **options)


def finish(world: World, claim: Claim | None, seconds: float = 5.0) -> uuid.UUID:
    assert claim is not None
    model = world.give_output(claim.run_id)
    world.act(claim, lambda session, run: attempt_outcomes.succeed(session, run, {"loss": 1.5}, seconds))
    sweeper.settle_all(world.sessions)
    return model


def output_model(world: World, run_id: uuid.UUID) -> uuid.UUID | None:
    with transaction(world.sessions) as session:
        return session.scalar(select(RunOutput.model_id).where(RunOutput.run_id == run_id))


def test_an_equal_run_succeeds_at_once_with_the_same_outputs_and_no_cost_of_its_own(world: World) -> None:
    dataset = world.dataset()
    first = train(world, dataset=dataset)
    model = finish(world, world.claim())
    again = world.get(train(world, "renamed", dataset=dataset))
    assert (again.state, again.reused_from_id, again.device_seconds) == ("succeeded", first, 0.0)
    assert again.summary == {"loss": 1.5, "reused_device_seconds": 5.0}
    assert output_model(world, again.id) == model


def test_a_raised_version_of_its_method_or_of_everything_computes_a_run_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = world.dataset()
    train(world, dataset=dataset)
    finish(world, world.claim())
    assert world.state(train(world, dataset=dataset)) == "succeeded"
    monkeypatch.setattr(code_version, "RESULT_VERSION", 1_000_000)
    code_version.code_version.cache_clear()
    try:
        assert world.state(train(world, dataset=dataset)) == "queued"
    finally:
        code_version.code_version.cache_clear()


def test_a_chain_of_reuse_leads_to_the_run_that_did_the_work(world: World) -> None:
    dataset = world.dataset()
    first = train(world, dataset=dataset)
    finish(world, world.claim())
    train(world, dataset=dataset)
    third = world.get(train(world, dataset=dataset))
    assert third.reused_from_id == first
    with transaction(world.sessions) as session:
        assert inputs.cost_of(session, session.get_one(Run, third.id)) == 5.0


def test_another_config_other_data_or_a_wish_to_run_again_is_not_reused(world: World) -> None:
    dataset = world.dataset()
    train(world, dataset=dataset)
    finish(world, world.claim())
    assert world.state(train(world, dataset=dataset, lr=0.002)) == "queued"
    assert world.state(train(world, dataset=world.dataset())) == "queued"
    assert world.state(train(world, dataset=dataset, reuse=False)) == "queued"


def test_equal_content_under_another_name_is_the_same_input(world: World) -> None:
    train(world, dataset=world.dataset("hash-of-rows"))
    finish(world, world.claim())
    assert world.state(train(world, dataset=world.dataset("hash-of-rows"))) == "succeeded"


def test_how_often_checkpoints_are_written_makes_no_difference(world: World) -> None:
    dataset = world.dataset()
    train(world, dataset=dataset)
    finish(world, world.claim())
    assert world.state(train(world, dataset=dataset, checkpoint_every=7)) == "succeeded"


def test_of_two_equal_runs_in_the_queue_the_second_takes_over_when_its_turn_comes(world: World) -> None:
    dataset = world.dataset()
    train(world, dataset=dataset)
    second = train(world, dataset=dataset)
    finish(world, world.claim())
    assert world.claim() is None
    assert world.state(second) == "succeeded"


def test_two_equal_runs_at_once_both_finish_with_outputs_of_their_own(world: World) -> None:
    dataset = world.dataset()
    first, second = train(world, dataset=dataset), train(world, dataset=dataset)
    claims = [world.claim(owner="a"), world.claim(owner="b")]
    models = [finish(world, claim) for claim in claims]
    assert [output_model(world, run) for run in (first, second)] == models
    assert world.get(train(world, dataset=dataset)).reused_from_id == first


def test_reuse_passes_down_a_pipeline_once_the_upstream_outputs_are_known(world: World) -> None:
    dataset = world.dataset()
    upstream = train(world, dataset=dataset)
    downstream = world.create("dt", config=SFT, inputs={"model": upstream}, reuse=True)
    finish(world, world.claim())
    finish(world, world.claim())
    again = train(world, dataset=dataset)
    last = world.get(world.create("dt", config=SFT, inputs={"model": again}, reuse=True))
    assert (last.state, last.reused_from_id) == ("succeeded", downstream)
