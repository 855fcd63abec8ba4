"""Academic runs from their start to the model's page, the report and the gate; what the harness finds is given."""

from __future__ import annotations

from typing import Any

import pytest
from evaluation_world import EvaluationWorld
from sqlalchemy import select

from steerboard.platform.database import transaction
from steerboard.registry.tables import Model
from steerboard.runs.state import attempt_outcomes, claims
from steerboard.runs.state.sweeper import settle_all
from steerboard.runs.tables import RunOutput
from steerboard_contracts.report.academic import AcademicFigure, AcademicResult, AcademicTask
from steerboard_statistics.benchmarks.academic import mean_of


def gsm8k(scores: list[int], **fields: Any) -> AcademicTask:
    figure = AcademicFigure(
        name="strict",
        metric="exact_match",
        filter="strict-match",
        value=sum(scores) / len(scores),
        stderr=0.05,
        interval=mean_of(scores),
        scores=scores,
    )
    shape = {"task": "gsm8k", "version": "3.0", "shots": 8, "template": False, "items_hash": "same"}
    return AcademicTask(items=len(scores), of=1319, figures=[figure], **{**shape, **fields})


def ran(world: EvaluationWorld, model: str, *tasks: AcademicTask) -> dict[str, Any]:
    """A finished run that found this."""
    config = {"run": "academic", "tasks": [task.task for task in tasks]}
    made = world.post("runs", {"config": config, "inputs": {"model": model}, "reuse": False})
    finish(world, *tasks)
    return dict(world.get(f"runs/{made['name']}"))


def finish(world: EvaluationWorld, *tasks: AcademicTask) -> None:
    claim = world.claim()
    assert claim is not None
    document = AcademicResult(harness="0.4.13", tasks=list(tasks)).model_dump(mode="json")
    with transaction(world.sessions) as session:
        run = claims.fenced(session, claim)
        session.add(RunOutput(run_id=run.id, name="academic", type="academic", document=document))
        attempt_outcomes.succeed(session, run, {}, 1.0)
    settle_all(world.sessions)


@pytest.fixture
def family(world: EvaluationWorld) -> EvaluationWorld:
    """dt was trained from sft, and that from base."""
    world.register("base", "base")
    with transaction(world.sessions) as session:
        models = {model.name: model for model in session.scalars(select(Model))}
        models["dt"].parent_id, models["sft"].parent_id = models["sft"].id, models["base"].id
    return world


def test_a_run_ends_with_its_figures_on_the_run_and_the_model(family: EvaluationWorld) -> None:
    run = ran(family, "sft", gsm8k([1, 1, 0, 1] * 5))
    (output,) = run["outputs"]
    (figure,) = output["document"]["tasks"][0]["figures"]
    assert (output["type"], figure["value"], figure["scores"]) == ("academic", 0.75, [])
    (whole,) = family.get(f"runs/{run['name']}/academic")["tasks"]
    assert whole["figures"][0]["scores"] == [1, 1, 0, 1] * 5
    (row,) = family.get("models/sft/academic")
    assert (row["run_id"], row["harness"], row["differences"]) == (run["id"], "0.4.13", [])
    assert row["task"] == output["document"]["tasks"][0]
    assert family.get("models/dt/academic") == []
    assert family.get("models/nobody/academic", status=404)["code"] == "unknown_model"


def test_a_model_is_compared_with_its_base_and_its_sft_model_item_by_item(family: EvaluationWorld) -> None:
    ran(family, "base", gsm8k([0] * 20))
    ran(family, "sft", gsm8k([1] * 10 + [0] * 10))
    ran(family, "dt", gsm8k([1] * 15 + [0] * 5))
    (row,) = family.get("models/dt/academic")
    found = {one["vs"]: one for one in row["differences"]}
    assert {vs: (one["model"], one["theirs"], one["difference"]["value"]) for vs, one in found.items()} == {
        "base": ("base", 0.0, 0.75),
        "sft": ("sft", 0.5, 0.25),
    }
    assert 0 < found["sft"]["difference"]["low"] < 0.25 < found["sft"]["difference"]["high"]
    (row,) = family.get("models/sft/academic")
    assert [one["vs"] for one in row["differences"]] == ["base"]
    assert family.get("models/base/academic")[0]["differences"] == []


def test_what_was_asked_in_another_way_is_not_compared(family: EvaluationWorld) -> None:
    others: tuple[dict[str, Any], ...] = ({"shots": 5}, {"version": "2.0"}, {"template": True}, {"items_hash": "other"})
    ran(family, "dt", gsm8k([1] * 20))
    for other in others:
        ran(family, "sft", gsm8k([1] * 20, **other))
        assert family.get("models/dt/academic")[0]["differences"] == []
    # An older run that asked as this one did is found behind the newer.
    ran(family, "sft", gsm8k([0] * 20))
    ran(family, "sft", gsm8k([1] * 20, **others[0]))
    (difference,) = family.get("models/dt/academic")[0]["differences"]
    assert difference["difference"]["value"] == 1.0


def test_the_newest_of_each_task_counts(family: EvaluationWorld) -> None:
    ran(family, "dt", gsm8k([0] * 20), gsm8k([0] * 20, task="arc"))
    newer = ran(family, "dt", gsm8k([1] * 20))
    rows = family.get("models/dt/academic")
    assert [(row["task"]["task"], row["task"]["figures"][0]["value"]) for row in rows] == [("arc", 0), ("gsm8k", 1)]
    assert rows[1]["run_id"] == newer["id"]


def test_the_report_and_the_gate_have_them_also_of_a_run_that_came_later(family: EvaluationWorld) -> None:
    family.evaluate("eval", {"model": "sft", "decoding": {"max_new_tokens": 2}}, {"model": "dt", "name": "dt"})
    assert family.get("evaluations/eval/report")["academic"] == []
    ran_first = {run["kind"] for run in family.get("runs")["items"]}
    assert ran_first == {"answer"}
    family.work_off()
    ran(family, "sft", gsm8k([1] * 10 + [0] * 10))
    ran(family, "dt", gsm8k([1] * 15 + [0] * 5))
    shown = {one["entrant"]: one["rows"] for one in family.get("evaluations/eval/report")["academic"]}
    assert shown["dt"] == family.get("models/dt/academic")
    assert shown["sft"][0]["task"]["figures"][0]["value"] == 0.5
    page = family.client.get(family.url("evaluations/eval/report.html")).text
    for words in ("Academic benchmarks", "gsm8k.strict", "0.750", "0.250"):
        assert words in page
    rules = [
        {"benchmark": "gsm8k.strict", "entrant": "dt", "min": 0.7},
        {"benchmark": "gsm8k.strict", "entrant": "dt", "not_below": "sft"},
        {"benchmark": "gsm8k.strict", "entrant": "sft", "min": 0.7},
    ]
    verdict = family.post("evaluations/eval/gate", {"rules": rules}, status=200)
    assert [rule["outcome"] for rule in verdict["rules"]] == ["pass", "pass", "fail"]


def test_the_report_has_those_of_an_endpoint_under_the_entrant_that_it_is(world: EvaluationWorld) -> None:
    world.settings.allowed_private = "127.0.0.1"
    world.post("endpoints", {"name": "remote", "base_url": "http://127.0.0.1:9/v1", "model": "m"})
    world.evaluate("eval", {"endpoint": "remote", "name": "served"}, {"model": "sft"})
    for run in world.get("runs")["items"]:
        world.post(f"runs/{run['id']}/cancel", {}, status=200)
    settle_all(world.sessions)
    run = ran(world, "remote", gsm8k([1] * 15 + [0] * 5, template=True))
    assert (run["config"]["endpoint"], run["inputs"]) == ("remote", [])
    (shown,) = world.get("evaluations/eval/report")["academic"]
    assert (shown["entrant"], shown["rows"][0]["run_id"]) == ("served", run["id"])
    assert (shown["rows"][0]["task"]["figures"][0]["value"], shown["rows"][0]["differences"]) == (0.75, [])
    assert world.get("models/sft/academic") == []


def test_wrong_configs_are_refused_by_field(world: EvaluationWorld) -> None:
    config = {"run": "academic", "tasks": ["gsm8k", "../etc"], "shots": {"gsm8k": -1}, "engine": "jax", "limit": 0}
    problem = world.post("runs", {"config": config, "inputs": {"model": "reward"}}, status=422)
    assert problem["code"] == "invalid_run"
    places = {error["location"] for error in problem["errors"]}
    assert {"config.tasks.1", "config.shots.gsm8k", "config.engine", "config.limit", "inputs.model"} <= places
    twice = {"run": "academic", "tasks": ["gsm8k", "gsm8k"]}
    problem = world.post("runs", {"config": twice, "inputs": {"model": "sft"}}, status=422)
    assert "named twice" in problem["errors"][0]["message"]


def test_the_suite_has_the_shots_of_its_paper(world: EvaluationWorld) -> None:
    made = world.post("runs", {"config": {"run": "academic"}, "inputs": {"model": "sft"}})
    config = world.get(f"runs/{made['name']}")["config"]
    assert config["tasks"] == ["gsm8k", "mmlu", "humaneval", "truthfulqa_mc2", "arc_challenge", "mbpp"]
    (kind,) = world.get("schemas/academic")
    fields = kind["config_schema"]["properties"]
    assert all(field["description"] and "default" in field for field in fields.values())


def test_a_recipe_runs_it_on_what_it_trains(world: EvaluationWorld) -> None:
    recipe = """
name: academic
inputs:
  ours: {type: model}
stages:
  check: {run: academic, model: $ours, tasks: [gsm8k], shots: {gsm8k: 4}, limit: 10}
"""
    made = world.post("pipelines", {"text": recipe, "set": ["ours=sft"]})
    finish(world, gsm8k([1] * 10, shots=4))
    assert world.get(f"runs/{made['name']}.check")["state"] == "succeeded"
    assert world.get("models/sft/academic")[0]["task"]["shots"] == 4
