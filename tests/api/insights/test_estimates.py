"""Estimates of a run's cost from earlier ones, and what launch forms learn about the configs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from api_world import ApiWorld
from sqlalchemy import select

from steerboard.datasets.tables import Dataset
from steerboard.platform.database import new_id, transaction
from steerboard.registry.tables import Model
from steerboard.runs.device_kinds import CPU
from steerboard.runs.tables import Run, RunAttempt, WorkerRow

# Rows to train on, and characters of one.
DATA = [(100, 300.0), (300, 120.0), (500, 800.0), (1000, 400.0)]


def sft(data: str = "texts", **config: Any) -> dict[str, Any]:
    return {"config": {"run": "train", "method": "sft", **config}, "inputs": {"model": "tiny", "data": data}}


def ran(
    world: ApiWorld,
    body: dict[str, Any],
    seconds: float,
    *,
    device: str | None = CPU,
    phases: dict[str, float] | None = None,
    **values: Any,
) -> Any:
    """A succeeded run that took so long; `phases`: how much of it in each."""
    made = world.post("runs", {**body, "reuse": False}, status=201)
    if body["config"]["run"] == "evaluate":  # the runs of its evaluation do the work, and it has none to evaluate
        values = {"state": "succeeded", "device_seconds": seconds, **values}
    else:
        world.work(seconds=seconds)
    with transaction(world.sessions) as session:
        run = session.scalars(select(Run).where(Run.id == made["id"])).one()
        for key, value in values.items():
            setattr(run, key, value)
        for attempt in session.scalars(select(RunAttempt).where(RunAttempt.run_id == run.id)):
            attempt.device = device
            attempt.phases = {name: {"device_seconds": spent, "tokens": 0} for name, spent in (phases or {}).items()}
        assert run.state == values.get("state", "succeeded")
    return made


def estimate(world: ApiWorld, body: dict[str, Any]) -> tuple[Any, Any, Any]:
    shown = world.post("runs/estimate", body)
    return shown["device_seconds_low"], shown["device_seconds"], shown["device_seconds_high"]


def dataset(world: ApiWorld, name: str, *, rows: int, characters: float = 100.0) -> None:
    """Instructions of which one is held out, with rows of so many characters in the mean."""
    id_ = world.dataset(name, "instructions", rows=rows)
    with transaction(world.sessions) as session:
        figures = {"prompt_characters": {"mean": characters / 4}, "response_characters": {"mean": characters * 3 / 4}}
        session.get_one(Dataset, id_).origin = {"figures": figures}


def model(world: ApiWorld, name: str, *, parameters: int) -> None:
    id_ = world.model(name)
    with transaction(world.sessions) as session:
        row = session.get_one(Model, id_)
        row.info = {**row.info, "parameters": parameters}


@pytest.fixture(autouse=True)
def worker(world: ApiWorld) -> None:
    """One that lives, without a GPU."""
    with transaction(world.sessions) as session:
        session.add(WorkerRow(id=new_id(), name="w1", pool="default", host="h", pid=1, devices={"ids": []}))


@pytest.fixture
def texts(world: ApiWorld) -> None:
    """101 and 401 rows, one of them held out."""
    dataset(world, "texts", rows=101)
    dataset(world, "many", rows=401)


@pytest.mark.usefixtures("texts")
def test_without_earlier_runs_nothing_is_invented(world: ApiWorld) -> None:
    ran(world, {"config": {"run": "generate", "prompts": ["Hi"]}, "inputs": {"model": "tiny"}}, 5.0)
    assert world.post("runs/estimate", sft()) == {
        "device_seconds_low": None,
        "device_seconds": None,
        "device_seconds_high": None,
        "based_on": [],
        "finished": 0,
        "memory": [],
        "warnings": [],
    }
    world.model("judge", "reward")
    score = {"config": {"run": "score"}, "inputs": {"data": "texts", "reward": "judge"}}
    assert estimate(world, score) == (None, None, None)


@pytest.mark.usefixtures("texts")
def test_training_is_scaled_by_rows_and_epochs(world: ApiWorld) -> None:
    made = [ran(world, sft(), seconds) for seconds in (10.0, 20.0, 60.0)]
    low, middle, high = estimate(world, sft())
    assert (low < 10.0, middle, high > 60.0) == (True, pytest.approx(20.0), True)
    assert estimate(world, sft("many"))[1] == pytest.approx(80.0)
    assert estimate(world, sft(epochs=0.5))[1] == pytest.approx(10.0)
    shown = world.post("runs/estimate", sft())
    assert shown["based_on"] == [
        {"id": run["id"], "name": run["name"], "device_seconds": seconds}
        for run, seconds in zip(reversed(made), (60.0, 20.0, 10.0), strict=True)
    ]
    assert len(world.get("runs")["items"]) == 3


@pytest.mark.usefixtures("texts")
def test_max_steps_caps_the_work_of_both(world: ApiWorld) -> None:
    ran(world, sft("many", max_steps=5, batch=10), 5.0)
    assert estimate(world, sft("many"))[1] == pytest.approx(40.0)
    assert estimate(world, sft("many", max_steps=20, batch=10))[1] == pytest.approx(20.0)
    assert estimate(world, sft(max_steps=20, batch=10))[1] == pytest.approx(10.0)


@pytest.mark.usefixtures("texts")
def test_rows_that_an_earlier_run_really_learned_count(world: ApiWorld) -> None:
    ran(world, sft(), 10.0, summary={"rows": 50})
    assert estimate(world, sft())[1] == pytest.approx(20.0)


@pytest.mark.usefixtures("texts")
def test_a_run_that_cut_its_rows_shows_little_of_how_long_whole_ones_take(world: ApiWorld) -> None:
    ran(world, sft(), 10.0, summary={"rows": 100, "tokens": 5000, "too_long_rows": 0})
    ran(world, sft(max_length=16), 2.0, summary={"rows": 100, "tokens": 1600, "too_long_rows": 90})
    assert estimate(world, sft())[1] == pytest.approx(10.0)
    assert estimate(world, sft(max_length=16))[1] == pytest.approx(2.0)
    # At most 25 of 50 tokens a row are left; more than they have changes nothing.
    assert estimate(world, sft(max_length=25))[1] == pytest.approx(5.0)
    assert estimate(world, sft(max_length=4000))[1] == pytest.approx(10.0)


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
    assert estimate(world, reward(half="a"))[1] == pytest.approx(5.0)


def test_an_evaluation_is_scaled_by_its_answers(world: ApiWorld) -> None:
    def evaluation(prompts: int, *scores: float) -> dict[str, Any]:
        entrants = [{}, {"scores": list(scores)}]
        inputs = {"entrants.0": "tiny", "entrants.1": "tuned", "rewards.0": "judge", "data": "texts"}
        return {"config": {"run": "evaluate", "entrants": entrants, "prompts": prompts}, "inputs": inputs}

    world.model("tuned", "policy")
    world.model("judge", "reward")
    dataset(world, "texts", rows=101)
    ran(world, evaluation(200), 10.0)
    assert estimate(world, evaluation(200, -5.0, 0.0, 5.0))[1] == pytest.approx(20.0)


@pytest.mark.usefixtures("texts")
def test_runs_that_say_little_about_the_cost_are_left_out(world: ApiWorld) -> None:
    source = ran(world, sft(), 10.0)
    ran(world, sft(), 1.0, reused_from_id=source["id"])
    ran(world, sft(), 1.0, failed_device_seconds=30.0)
    ran(world, sft(), 1.0, state="cancelled")
    world.post("runs", {**sft(), "reuse": False}, status=201)
    world.work(fail="bad_row")
    shown = world.post("runs/estimate", sft())
    assert [run["id"] for run in shown["based_on"]] == [source["id"]]
    assert shown["device_seconds"] == pytest.approx(10.0)
    reward = {"config": {"run": "train", "method": "reward_model"}, "inputs": {"model": "tiny", "data": "hh"}}
    assert estimate(world, reward) == (None, None, None)


@pytest.mark.usefixtures("texts")
def test_generation_is_scaled_by_its_answers_and_scoring_by_its_rows(world: ApiWorld) -> None:
    def generate(**config: Any) -> dict[str, Any]:
        return {"config": {"run": "generate", **config}, "inputs": {"model": "tiny", "data": "texts"}}

    ran(world, generate(), 10.0)
    assert estimate(world, generate(decoding={"n": 4, "temperature": 1}))[1] == pytest.approx(40.0)
    assert estimate(world, generate(limit=50))[1] == pytest.approx(5.0)
    assert estimate(world, generate(limit=500))[1] == pytest.approx(10.0)
    assert estimate(world, generate(split="all"))[1] == pytest.approx(10.1)
    inline = {"config": {"run": "generate", "prompts": ["a"] * 20, "scores": [1, 2]}, "inputs": {"model": "tiny"}}
    assert estimate(world, inline)[1] == pytest.approx(4.0)
    world.model("judge", "reward")
    score = {"config": {"run": "score"}, "inputs": {"data": "texts", "reward": "judge"}}
    ran(world, score, 1.01)
    assert estimate(world, {**score, "inputs": {**score["inputs"], "data": "many"}})[1] == pytest.approx(4.01)


def test_a_benchmark_is_scaled_by_its_pairs(world: ApiWorld) -> None:
    world.model("judge", "reward")
    world.dataset("more", rows=40)
    benchmark = {"config": {"run": "benchmark"}, "inputs": {"reward": "judge", "pairs": "hh"}}
    ran(world, benchmark, 2.0)
    assert estimate(world, {**benchmark, "inputs": {"reward": "judge", "pairs": "more"}})[1] == pytest.approx(8.0)


def test_training_takes_longer_with_longer_texts_and_larger_models(world: ApiWorld) -> None:
    dataset(world, "short", rows=101, characters=100)
    dataset(world, "long", rows=101, characters=300)
    model(world, "small", parameters=1_000_000)
    model(world, "large", parameters=4_000_000)

    def training(of: str, data: str) -> dict[str, Any]:
        return {**sft(), "inputs": {"model": of, "data": data}}

    ran(world, training("small", "short"), 10.0)
    equal = estimate(world, training("small", "short"))
    for changed, seconds in ((training("small", "long"), 30.0), (training("large", "short"), 40.0)):
        low, middle, high = estimate(world, changed)
        assert middle == pytest.approx(seconds)
        assert high / low > equal[2] / equal[0]


@pytest.mark.usefixtures("texts")
def test_opening_models_takes_no_longer_for_more_rows(world: ApiWorld) -> None:
    ran(world, sft(), 10.0, phases={"load": 7.0, "update": 2.0})
    assert estimate(world, sft("many"))[1] == pytest.approx(8.0 + 4 * 2.0)


@pytest.mark.usefixtures("texts")
def test_runs_on_another_kind_of_device_tell_nothing(world: ApiWorld) -> None:
    ran(world, sft(), 5.7, device="NVIDIA H100")
    shown = world.post("runs/estimate", sft())
    assert (shown["device_seconds"], shown["based_on"], shown["finished"]) == (None, [], 1)
    ran(world, sft(), 145.0)
    assert estimate(world, sft())[1] == pytest.approx(145.0)


def test_a_run_a_hundred_times_as_large_is_unknown(world: ApiWorld) -> None:
    dataset(world, "texts", rows=101)
    dataset(world, "huge", rows=10_001)
    ran(world, sft(), 5.7)
    assert estimate(world, sft("huge")) == (None, None, None)


@pytest.mark.usefixtures("texts")
def test_runs_that_agree_give_no_false_precision(world: ApiWorld) -> None:
    for seconds in (5.7, 5.8, 5.7, 5.8):
        ran(world, sft(), seconds)
    low, middle, high = estimate(world, sft())
    assert low < middle / 1.2
    assert high > middle * 1.2


def test_at_least_eight_of_ten_runs_take_a_time_inside_the_interval_given_before_they_began(world: ApiWorld) -> None:
    """Each run of a growing project is foretold by the runs before it. Time is not proportional to anything: starting
    up takes a while, a model of four times the size takes three times as long, and others use the machine."""
    rng = np.random.default_rng(44)
    characters = {f"data-{number}": (rows, length) for number, (rows, length) in enumerate(DATA)}
    for name, (rows, length) in characters.items():
        dataset(world, name, rows=rows + 1, characters=length)
    models = {"small": 1_000_000, "middle": 4_000_000, "large": 16_000_000}
    for name, parameters in models.items():
        model(world, name, parameters=parameters)
    inside = []
    for _ in range(25):
        data, of, epochs = str(rng.choice(list(characters))), str(rng.choice(list(models))), int(rng.integers(1, 4))
        rows, length = characters[data]
        work = rows * epochs * (length + 40) / 4 * (models[of] / 1e6) ** 0.8
        load, update = 6 * rng.lognormal(0, 0.2), work / 2000 * rng.lognormal(0, 0.25)
        body = {**sft(epochs=epochs), "inputs": {"model": of, "data": data}}
        low, _, high = estimate(world, body)
        if low is not None:
            inside.append(low <= load + update <= high)
            assert high / low > 1.4
        ran(world, body, load + update, phases={"load": load, "update": update})
    assert len(inside) >= 20
    assert np.mean(inside) >= 0.8


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
