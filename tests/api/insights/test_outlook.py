"""How far a pipeline is, and how long its rest takes from what equal stages took before."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from api_world import ApiWorld
from sqlalchemy import func, select

from steerboard.platform.database import new_id, transaction
from steerboard.runs.tables import Metric, Pipeline, Run, WorkerRow


def outlook(world: ApiWorld, pipeline: str) -> Any:
    return world.get(f"pipelines/{pipeline}/outlook")


def edit(world: ApiWorld, pipeline: str, stage: str, **values: Any) -> None:
    """`seconds` it took, or `running_for` so many."""
    with transaction(world.sessions) as session:
        run = session.scalars(
            select(Run)
            .join(Pipeline, Pipeline.id == Run.pipeline_id)
            .where(Pipeline.name == pipeline, Run.name == stage)
        ).one()
        now = session.scalar(select(func.clock_timestamp()))
        assert now is not None
        if (seconds := values.pop("seconds", None)) is not None:
            run.ended_at, run.started_at = now, now - dt.timedelta(seconds=seconds)
        if (seconds := values.pop("running_for", None)) is not None:
            run.started_at = now - dt.timedelta(seconds=seconds)
        for key, value in values.items():
            setattr(run, key, value)


def finished(world: ApiWorld, name: str, **seconds: float) -> None:
    world.start(reuse=False)
    for _ in seconds:
        world.work()
    for stage, took in seconds.items():
        edit(world, name, stage, seconds=took)


def test_the_first_pipeline_of_a_recipe_has_no_estimate_and_says_for_which_stages(world: ApiWorld) -> None:
    world.start()
    assert outlook(world, "small-1") == {
        "stages": 3,
        "ended": 0,
        "share": 0.0,
        "seconds_left": None,
        "unknown": ["chosen", "sft", "reward"],
        "running": [],
    }


def test_the_rest_takes_as_long_as_the_same_stages_took_before(world: ApiWorld) -> None:
    finished(world, "small-1", chosen=10, sft=60, reward=30)
    world.start(reuse=False)
    assert outlook(world, "small-2")["seconds_left"] == pytest.approx(100)
    world.work()
    forecast = outlook(world, "small-2")
    assert (forecast["ended"], forecast["unknown"]) == (1, [])
    assert (forecast["share"], forecast["seconds_left"]) == (pytest.approx(0.1), pytest.approx(90))


def test_a_stage_under_way_counts_by_its_time(world: ApiWorld) -> None:
    finished(world, "small-1", chosen=10, sft=60, reward=30)
    world.start(reuse=False)
    world.work()
    claim = world.claim()
    edit(world, "small-2", "sft", running_for=15, progress={"done": 99, "total": 100, "unit": "steps", "phase": "x"})
    forecast = outlook(world, "small-2")
    assert forecast["running"] == [str(claim.run_id)]
    assert forecast["seconds_left"] == pytest.approx(75, abs=2)
    assert forecast["share"] == pytest.approx(0.25, abs=0.02)
    edit(world, "small-2", "sft", running_for=600)
    assert outlook(world, "small-2")["share"] == pytest.approx((10 + 0.95 * 60) / 100)


def test_a_stage_that_never_ran_before_counts_by_its_progress(world: ApiWorld) -> None:
    finished(world, "small-1", chosen=10)
    edit(world, "small-1", "sft", name="former")
    world.start("reward.epochs=2", reuse=False)
    world.post("pipelines/small-1/cancel")
    world.work()
    world.claim()
    edit(world, "small-2", "sft", running_for=30, progress={"done": 1, "total": 20, "unit": "steps", "phase": "x"})
    assert outlook(world, "small-2")["unknown"] == ["sft", "reward"]
    edit(world, "small-2", "sft", running_for=30, progress={"done": 5, "total": 20, "unit": "steps", "phase": "x"})
    forecast = outlook(world, "small-2")
    assert (forecast["unknown"], forecast["seconds_left"]) == (["reward"], None)
    assert 1 / 3 < forecast["share"] < 1 / 2


def test_more_workers_shorten_the_rest_down_to_its_longest_chain(world: ApiWorld) -> None:
    text = """\
name: wide
inputs:
  base: {type: model}
  data: {type: dataset, kind: preferences}
stages:
  first: {run: train, method: reward_model, model: $base, data: $data}
  second: {run: train, method: reward_model, model: $base, data: $data, seed: 1}
  third: {run: train, method: reward_model, model: $base, data: $data, seed: 2}
"""
    world.start(text=text, reuse=False)
    for stage, took in (("first", 40), ("second", 20), ("third", 20)):
        world.work()
        edit(world, "wide-1", stage, seconds=took)
    world.start(text=text, reuse=False)
    assert outlook(world, "wide-2")["seconds_left"] == pytest.approx(80)
    with transaction(world.sessions) as session:
        for n in range(4):
            session.add(WorkerRow(id=new_id(), name=f"w{n}", pool="default", host="h", pid=n, devices={"ids": []}))
    assert outlook(world, "wide-2")["seconds_left"] == pytest.approx(40)


def test_other_recipes_and_projects_say_nothing(world: ApiWorld) -> None:
    finished(world, "small-1", chosen=10, sft=60, reward=30)
    world.start("name=other", reuse=False)
    assert outlook(world, "other-1")["unknown"] == ["chosen", "sft", "reward"]
    assert world.get("pipelines/small-9/outlook", status=404)["code"] == "not_found"


def test_a_run_that_trains_has_as_much_time_left_as_its_latest_steps_took(world: ApiWorld) -> None:
    finished(world, "small-1", chosen=10, sft=60, reward=30)
    world.start(reuse=False)
    world.work()
    claim = world.claim()
    training = {"done": 40, "total": 100, "unit": "steps", "phase": "training"}
    edit(world, "small-2", "sft", running_for=15, progress=training)

    def steps(steps: range, pace: float, at: float = 0.0) -> None:
        with transaction(world.sessions) as session:
            session.add_all(
                Metric(run_id=claim.run_id, name="device_seconds", step=n, value=at + pace * (n - steps[0]), attempt=1)
                for n in steps
            )

    def left() -> float | None:
        seconds: float | None = world.get(f"runs/{claim.run_id}")["seconds_left"]
        return seconds

    steps(range(1, 2), 0.0, at=300.0)
    assert left() is None
    # Slow at first; only the pace of the last twenty counts.
    steps(range(2, 21), 30.0, at=300.0)
    steps(range(21, 41), 2.0, at=1000.0)
    assert left() == pytest.approx(120)
    assert outlook(world, "small-2")["seconds_left"] == pytest.approx(150)
    listed = {run["id"]: run["seconds_left"] for run in world.get("runs")["items"] if run["seconds_left"] is not None}
    assert listed == {str(claim.run_id): pytest.approx(120)}
    edit(world, "small-2", "sft", progress={**training, "phase": "evaluating", "unit": "batches"})
    assert left() is None
