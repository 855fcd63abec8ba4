"""Academic runs from their start to the model's page, the report and the gate; what the harness finds is given."""

from __future__ import annotations

from typing import Any

import pytest
from evaluation_world import EvaluationWorld
from sqlalchemy import select

from steerboard.platform.database import transaction
from steerboard.registry.tables import Model
from steerboard.runs.results import academic
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
    shape = {"task": "gsm8k", "version": "3.0", "shots": 8, "template": False, "of": len(scores)}
    hashes = {"items_hash": "items", "asked_hash": "asked", "scored_hash": "scored"}
    return AcademicTask(items=len(scores), figures=[figure], **{**shape, **hashes, **fields})


def trial(scores: list[int], **fields: Any) -> AcademicTask:
    """A trial of the first items only."""
    return gsm8k(scores, **{"of": 1319, "items_hash": "first items", **fields})


def ran(world: EvaluationWorld, model: str, *tasks: AcademicTask, harness: str = "0.4.13") -> dict[str, Any]:
    """A finished run that found this."""
    limit = min((task.items for task in tasks if not task.whole), default=None)
    config = {"run": "academic", "tasks": [task.task for task in tasks], "limit": limit}
    made = world.post("runs", {"config": config, "inputs": {"model": model}, "reuse": False})
    finish(world, *tasks, harness=harness)
    return dict(world.get(f"runs/{made['name']}"))


def finish(world: EvaluationWorld, *tasks: AcademicTask, harness: str = "0.4.13") -> None:
    claim = world.claim()
    assert claim is not None
    document = AcademicResult(harness=harness, tasks=list(tasks)).model_dump(mode="json")
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
    by_vs = {difference["vs"]: difference for difference in row["differences"]}
    assert {
        vs: (difference["model"], difference["theirs"], difference["difference"]["value"])
        for vs, difference in by_vs.items()
    } == {
        "base": ("base", 0.0, 0.75),
        "sft": ("sft", 0.5, 0.25),
    }
    assert 0 < by_vs["sft"]["difference"]["low"] < 0.25 < by_vs["sft"]["difference"]["high"]
    (row,) = family.get("models/sft/academic")
    assert [difference["vs"] for difference in row["differences"]] == ["base"]
    assert family.get("models/base/academic")[0]["differences"] == []


@pytest.mark.parametrize(
    ("other", "unlike"),
    [
        ({"shots": 5, "asked_hash": "other"}, ["shots"]),
        ({"version": "2.0"}, ["version"]),
        ({"template": True}, ["template"]),
        ({"items_hash": "other", "asked_hash": "other"}, ["items"]),
        ({"asked_hash": "other"}, ["prompts"]),
        ({"scored_hash": "other"}, ["scoring"]),
        ({"harness": "0.4.14"}, ["harness"]),
        ({"asked_hash": "", "scored_hash": ""}, ["scoring", "prompts"]),
        ({"harness": "0.4.14", "version": "4.0", "scored_hash": "other"}, ["harness", "version", "scoring"]),
    ],
)
def test_what_was_asked_or_scored_in_another_way_is_not_compared_and_it_says_why(
    family: EvaluationWorld, other: dict[str, Any], unlike: list[str]
) -> None:
    harness = other.pop("harness", "0.4.13")
    ran(family, "dt", gsm8k([1] * 20))
    unlike_run = ran(family, "sft", gsm8k([1] * 20, **other), harness=harness)
    (row,) = family.get("models/dt/academic")
    assert row["differences"] == []
    assert row["not_compared"] == [{"vs": "sft", "model": "sft", "run_id": unlike_run["id"], "unlike": unlike}]
    # An older run that asked as this one did is found behind the newer.
    ran(family, "sft", gsm8k([0] * 20))
    ran(family, "sft", gsm8k([1] * 20, **other), harness=harness)
    (row,) = family.get("models/dt/academic")
    assert [difference["difference"]["value"] for difference in row["differences"]] == [1.0]
    assert row["not_compared"] == []


def test_results_that_say_nothing_of_how_they_were_asked_are_not_compared_with_each_other(
    family: EvaluationWorld,
) -> None:
    for model in ("sft", "dt"):
        ran(family, model, gsm8k([1] * 20, asked_hash="", scored_hash=""))
    (row,) = family.get("models/dt/academic")
    assert (row["differences"], row["not_compared"][0]["unlike"]) == ([], ["scoring", "prompts"])


def test_the_newest_of_each_task_counts(family: EvaluationWorld) -> None:
    ran(family, "dt", gsm8k([0] * 20), gsm8k([0] * 20, task="arc"))
    newer = ran(family, "dt", gsm8k([1] * 20))
    rows = family.get("models/dt/academic")
    assert [(row["task"]["task"], row["task"]["figures"][0]["value"]) for row in rows] == [("arc", 0), ("gsm8k", 1)]
    assert rows[1]["run_id"] == newer["id"]


def test_a_trial_on_the_first_items_takes_the_place_of_no_whole_run(
    family: EvaluationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ran(family, "dt", trial([1] * 12))
    (row,) = family.get("models/dt/academic")
    assert (row["run_id"], row["task"]["items"], row["task"]["of"]) == (first["id"], 12, 1319)
    whole = ran(family, "dt", gsm8k([0] * 20))
    ran(family, "dt", trial([1] * 12))
    # However many trials came after it.
    monkeypatch.setattr(academic, "_RUNS", academic._RUNS.limit(2))
    ran(family, "dt", trial([1] * 12))
    (row,) = family.get("models/dt/academic")
    assert (row["run_id"], row["task"]["figures"][0]["value"]) == (whole["id"], 0)


def test_a_trial_decides_no_gate_unless_the_rule_lets_it(family: EvaluationWorld) -> None:
    family.evaluate("eval", {"model": "sft", "decoding": {"max_new_tokens": 2}}, {"model": "dt", "name": "dt"})
    family.work_off()
    ran(family, "dt", trial([1] * 12))
    rule = {"benchmark": "gsm8k.strict", "entrant": "dt", "min": 0.7}
    verdict = family.post("evaluations/eval/gate", {"rules": [rule, {**rule, "partial": True}]}, status=200)
    assert [rule["outcome"] for rule in verdict["rules"]] == ["invalid", "pass"]
    assert "only 12 of the 1,319 items of gsm8k were answered" in verdict["rules"][0]["why"]
    page = family.client.get(family.url("evaluations/eval/report.html")).text
    assert "of 1319" in page


def test_the_report_and_the_gate_have_them_also_of_a_run_that_came_later(family: EvaluationWorld) -> None:
    family.evaluate("eval", {"model": "sft", "decoding": {"max_new_tokens": 2}}, {"model": "dt", "name": "dt"})
    assert family.get("evaluations/eval/report")["academic"] == []
    ran_first = {run["kind"] for run in family.get("runs")["items"]}
    assert ran_first == {"answer"}
    family.work_off()
    ran(family, "sft", gsm8k([1] * 10 + [0] * 10))
    ran(family, "dt", gsm8k([1] * 15 + [0] * 5))
    shown = {section["entrant"]: section["rows"] for section in family.get("evaluations/eval/report")["academic"]}
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


def of_entrant(world: EvaluationWorld, entrant: str = "served") -> list[dict[str, Any]]:
    shown = {section["entrant"]: section["rows"] for section in world.get("evaluations/eval/report")["academic"]}
    return list(shown.get(entrant, []))


@pytest.fixture
def served(world: EvaluationWorld) -> EvaluationWorld:
    """An endpoint `remote` that serves `m`, and is the entrant `served` of an evaluation."""
    world.settings.allowed_private = "127.0.0.1"
    world.post("endpoints", {"name": "remote", "base_url": "http://127.0.0.1:9/v1", "model": "m"})
    world.evaluate("eval", {"endpoint": "remote", "name": "served"}, {"model": "sft"})
    cancel_all(world)
    return world


def change(world: EvaluationWorld, **fields: str) -> None:
    world.client.patch(world.url("endpoints/remote"), json=fields).raise_for_status()


def cancel_all(world: EvaluationWorld) -> None:
    for run in world.get("runs")["items"]:
        if run["state"] in ("queued", "pending"):
            world.post(f"runs/{run['id']}/cancel", {}, status=200)
    settle_all(world.sessions)


def test_the_report_has_those_of_an_endpoint_under_the_entrant_that_it_is(served: EvaluationWorld) -> None:
    run = ran(served, "remote", gsm8k([1] * 15 + [0] * 5, template=True))
    (endpoint,) = served.get("endpoints")
    assert (run["config"]["endpoint"], run["inputs"]) == ("remote", [])
    pin = {"id": endpoint["id"], "base_url": "http://127.0.0.1:9/v1", "model": "m"}
    assert run["config"]["pinned_endpoint"] == pin
    (row,) = of_entrant(served)
    assert (row["run_id"], row["task"]["figures"][0]["value"], row["differences"]) == (run["id"], 0.75, [])
    assert served.get("models/sft/academic") == []


def test_what_an_endpoint_serves_later_is_credited_to_no_one_who_answered_before(served: EvaluationWorld) -> None:
    before = ran(served, "remote", gsm8k([1] * 20))
    change(served, model="another")
    after = ran(served, "remote", gsm8k([0] * 20))
    assert after["config"]["pinned_endpoint"]["model"] == "another"
    assert [row["run_id"] for row in of_entrant(served)] == [before["id"]]
    # Under another name it is the same, and another of its name is not.
    change(served, model="m", name="renamed")
    served.post("endpoints", {"name": "remote", "base_url": "http://127.0.0.1:9/v1", "model": "m"})
    ran(served, "remote", gsm8k([0] * 20))
    assert [row["run_id"] for row in of_entrant(served)] == [before["id"]]
    newest = ran(served, "renamed", gsm8k([0] * 20))
    assert [row["run_id"] for row in of_entrant(served)] == [newest["id"]]


def test_a_clone_asks_what_the_endpoint_is_now_whatever_its_original_asked(served: EvaluationWorld) -> None:
    first = ran(served, "remote", gsm8k([1] * 20))
    change(served, model="another")
    clone = served.post(f"runs/{first['id']}/clone", {})
    assert served.get(f"runs/{clone['id']}")["config"]["pinned_endpoint"]["model"] == "another"
    forged = {**first["config"], "pinned_endpoint": {**first["config"]["pinned_endpoint"], "model": "forged"}}
    started = served.post("runs", {"config": forged, "inputs": {}})
    assert served.get(f"runs/{started['id']}")["config"]["pinned_endpoint"]["model"] == "another"


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
