"""Estimates of a run's cost from earlier ones, and what launch forms learn about the configs."""

from __future__ import annotations

from typing import Any

import pytest
from api_world import ApiWorld
from sqlalchemy import select

from steerboard.platform.database import transaction
from steerboard.runs.tables import Run


def sft(data: str = "texts", **config: Any) -> dict[str, Any]:
    return {"config": {"run": "train", "method": "sft", **config}, "inputs": {"model": "tiny", "data": data}}


def ran(world: ApiWorld, body: dict[str, Any], seconds: float, **values: Any) -> Any:
    """A succeeded run that took so long."""
    made = world.post("runs", {**body, "reuse": False}, status=201)
    if body["config"]["run"] == "evaluate":  # the runs of its evaluation do the work, and it has none to evaluate
        values = {"state": "succeeded", "device_seconds": seconds, **values}
    else:
        world.work(seconds=seconds)
    with transaction(world.sessions) as session:
        run = session.scalars(select(Run).where(Run.id == made["id"])).one()
        for key, value in values.items():
            setattr(run, key, value)
        assert run.state == values.get("state", "succeeded")
    return made


def estimate(world: ApiWorld, body: dict[str, Any]) -> tuple[Any, Any, Any]:
    shown = world.post("runs/estimate", body)
    return shown["device_seconds_low"], shown["device_seconds"], shown["device_seconds_high"]


@pytest.fixture
def texts(world: ApiWorld) -> None:
    """101 and 1001 rows, one of them held out."""
    world.dataset("texts", "instructions", rows=101)
    world.dataset("many", "instructions", rows=1001)


@pytest.mark.usefixtures("texts")
def test_without_earlier_runs_nothing_is_invented(world: ApiWorld) -> None:
    ran(world, {"config": {"run": "generate", "prompts": ["Hi"]}, "inputs": {"model": "tiny"}}, 5.0)
    assert world.post("runs/estimate", sft()) == {
        "device_seconds_low": None,
        "device_seconds": None,
        "device_seconds_high": None,
        "based_on": [],
        "memory": [],
        "warnings": [],
    }
    world.model("judge", "reward")
    score = {"config": {"run": "score"}, "inputs": {"data": "texts", "reward": "judge"}}
    assert estimate(world, score) == (None, None, None)


@pytest.mark.usefixtures("texts")
def test_training_is_scaled_by_rows_and_epochs(world: ApiWorld) -> None:
    made = [ran(world, sft(), seconds) for seconds in (10.0, 20.0, 60.0)]
    assert estimate(world, sft()) == (10.0, 20.0, 60.0)
    assert estimate(world, sft("many")) == (100.0, 200.0, 600.0)
    assert estimate(world, sft(epochs=0.5)) == (5.0, 10.0, 30.0)
    shown = world.post("runs/estimate", sft())
    assert shown["based_on"] == [
        {"id": run["id"], "name": run["name"], "device_seconds": seconds}
        for run, seconds in zip(reversed(made), (60.0, 20.0, 10.0), strict=True)
    ]
    assert len(world.get("runs")["items"]) == 3


@pytest.mark.usefixtures("texts")
def test_max_steps_caps_the_work_of_both(world: ApiWorld) -> None:
    ran(world, sft("many", max_steps=5, batch=10), 5.0)
    assert estimate(world, sft("many"))[1] == 100.0
    assert estimate(world, sft("many", max_steps=20, batch=10))[1] == 20.0
    assert estimate(world, sft(max_steps=20, batch=10))[1] == 10.0


@pytest.mark.usefixtures("texts")
def test_rows_that_an_earlier_run_really_learned_count(world: ApiWorld) -> None:
    ran(world, sft(), 10.0, summary={"rows": 50})
    assert estimate(world, sft())[1] == 20.0


@pytest.mark.long
def test_a_filter_is_scaled_by_the_training_rows_above_its_threshold(world: ApiWorld) -> None:
    def mle(threshold: float) -> dict[str, Any]:
        config = {"run": "train", "method": "mle_filter", "threshold": threshold}
        return {"config": config, "inputs": {"model": "tiny", "data": "graded"}}

    def kept(threshold: float) -> int:
        return int(world.post("previews/mle-filter", {"data": "graded", "threshold": threshold})["kept"])

    world.labelled("graded", [float(i) for i in range(100)])
    ran(world, mle(0.0), 10.0, summary={"rows": kept(0.0)})
    assert 0 < kept(1.0) < kept(0.0)
    assert estimate(world, mle(1.0))[1] == pytest.approx(10.0 * kept(1.0) / kept(0.0))
    assert estimate(world, mle(50.0)) == (None, None, None)


def test_half_of_the_pairs_is_half_of_the_work(world: ApiWorld) -> None:
    def reward(**config: Any) -> dict[str, Any]:
        return {
            "config": {"run": "train", "method": "reward_model", **config},
            "inputs": {"model": "tiny", "data": "hh"},
        }

    ran(world, reward(), 10.0)
    assert estimate(world, reward(half="a"))[1] == 5.0


def test_an_evaluation_is_scaled_by_its_answers(world: ApiWorld) -> None:
    def evaluation(prompts: int, *scores: float) -> dict[str, Any]:
        entrants = [{}, {"scores": list(scores)}]
        inputs = {"entrants.0": "tiny", "entrants.1": "tuned", "rewards.0": "judge", "data": "texts"}
        return {"config": {"run": "evaluate", "entrants": entrants, "prompts": prompts}, "inputs": inputs}

    world.model("tuned", "policy")
    world.model("judge", "reward")
    world.dataset("texts", "instructions", rows=101)
    ran(world, evaluation(200), 10.0)
    assert estimate(world, evaluation(200, -5.0, 0.0, 5.0))[1] == 20.0


@pytest.mark.usefixtures("texts")
def test_runs_that_say_little_about_the_cost_are_left_out(world: ApiWorld) -> None:
    source = ran(world, sft(), 10.0)
    ran(world, sft(), 1.0, reused_from_id=source["id"])
    ran(world, sft(), 1.0, failed_device_seconds=30.0)
    ran(world, sft(), 1.0, state="cancelled")
    world.post("runs", {**sft(), "reuse": False}, status=201)
    world.work(fail="bad_row")
    assert estimate(world, sft()) == (10.0, 10.0, 10.0)
    reward = {"config": {"run": "train", "method": "reward_model"}, "inputs": {"model": "tiny", "data": "hh"}}
    assert estimate(world, reward) == (None, None, None)


@pytest.mark.usefixtures("texts")
def test_generation_is_scaled_by_its_answers_and_scoring_by_its_rows(world: ApiWorld) -> None:
    def generate(**config: Any) -> dict[str, Any]:
        return {"config": {"run": "generate", **config}, "inputs": {"model": "tiny", "data": "texts"}}

    ran(world, generate(), 10.0)
    assert estimate(world, generate(decoding={"n": 4, "temperature": 1}))[1] == 40.0
    assert estimate(world, generate(limit=50))[1] == 5.0
    assert estimate(world, generate(limit=500))[1] == 10.0
    assert estimate(world, generate(split="all"))[1] == pytest.approx(10.1)
    inline = {"config": {"run": "generate", "prompts": ["a"], "scores": [1, 2]}, "inputs": {"model": "tiny"}}
    assert estimate(world, inline)[1] == pytest.approx(0.2)
    world.model("judge", "reward")
    score = {"config": {"run": "score"}, "inputs": {"data": "texts", "reward": "judge"}}
    ran(world, score, 1.01)
    assert estimate(world, {**score, "inputs": {**score["inputs"], "data": "many"}})[1] == pytest.approx(10.01)


def test_a_benchmark_is_scaled_by_its_pairs(world: ApiWorld) -> None:
    world.model("judge", "reward")
    world.dataset("more", rows=1000)
    benchmark = {"config": {"run": "benchmark"}, "inputs": {"reward": "judge", "pairs": "hh"}}
    ran(world, benchmark, 2.0)
    assert estimate(world, {**benchmark, "inputs": {"reward": "judge", "pairs": "more"}})[1] == 200.0


@pytest.mark.usefixtures("texts")
def test_what_cannot_be_started_cannot_be_estimated(world: ApiWorld) -> None:
    problem = world.post("runs/estimate", sft("nope", lr=-1), status=422)
    assert problem["code"] == "invalid_run"
    assert {place["location"] for place in problem["errors"]} == {"config.lr", "inputs.data"}
    assert world.post("runs/estimate", sft("nope"), status=422)["code"] == "invalid_run"
    assert world.post("runs/estimate", {**sft(), "pool": "gpu"}, status=422)["code"] == "invalid_request"


def test_every_field_of_training_is_described_and_defaults_of_the_paper_name_it(world: ApiWorld) -> None:
    sources = {}
    for kind in world.get("schemas/train"):
        properties = kind["config_schema"]["properties"]
        assert [name for name, field in properties.items() if not field.get("description")] == []
        for name, field in properties.items():
            if "source" in field:
                sources[kind["method"], name] = (field["default"], field["source"])
    assert sources["rwr", "beta"] == (5.0, "arXiv 2308.12050, Hyperparameters")
    assert sources["reward_model", "lr"][0] == 9e-6
    assert sources["sft", "lr"][0] == 5e-6
    assert sources["decision_transformer", "default_score"][0] == 5.0
    assert ("sft", "adam_beta2") not in sources
