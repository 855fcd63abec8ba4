"""Runs and models of a method that is not installed any more, and how the API lists those that are."""

from __future__ import annotations

import uuid

from api_world import ApiWorld

from steerboard.platform.database import transaction
from steerboard.registry.tables import Model
from steerboard.runs.tables import Run
from steerboard_contracts.methods import methods


def of_another_package(world: ApiWorld) -> str:
    """A failed run that a method `gone` had trained, and the model of another one."""
    started = world.start()
    world.work()
    world.work(fail="stage_crashed")
    run = next(run for run in world.get("runs")["items"] if run["name"] == "sft")
    with transaction(world.sessions) as session:
        row = session.get_one(Run, uuid.UUID(run["id"]))
        row.method, row.config = "gone", {**row.config, "method": "gone", "its_own": 7}
    model = world.model("theirs", "policy")
    with transaction(world.sessions) as session:
        info = {"role": "policy", "method": "gone", "architecture": "x", "parameters": 1, "max_length": 8}
        stored = session.get_one(Model, model)
        stored.method, stored.info = "gone", info
    assert world.get(f"pipelines/{started['name']}")["name"] == started["name"]
    return str(run["id"])


def test_they_are_listed_and_shown_as_they_are(world: ApiWorld) -> None:
    run = of_another_package(world)
    assert "gone" in {run["method"] for run in world.get("runs")["items"]}
    shown = world.get(f"runs/{run}")
    assert (shown["method"], shown["config"]["its_own"]) == ("gone", 7)
    assert world.get("models/theirs")["info"]["method"] == "gone"


def test_to_start_one_again_says_what_is_missing(world: ApiWorld) -> None:
    run = of_another_package(world)
    refused = world.post(f"runs/{run}/clone", {}, status=422)
    assert "`gone` is not a method that is installed here; known: sft, " in refused["errors"][0]["message"]
    changed = world.post(f"runs/{run}/resume", {"config": {"micro_tokens": 64}}, status=422)
    assert (changed["code"], changed["detail"]) == ("unknown_method", "method gone is not installed here")


def test_every_run_kind_says_what_pages_show_of_it(world: ApiWorld) -> None:
    cards = {card["key"]: card for card in world.get("schemas")}
    assert [key for key, card in cards.items() if card["kind"] == "train"] == [*methods()]
    for name, spec in methods().items():
        card = cards[name]
        assert (card["title"], card["makes"], card["training"]["source"]) == (spec.title, spec.role, spec.source)
        assert set(card["for_data"]) == set(spec.data)
        assert set(spec.form) <= set(card["form"])
    assert cards["benchmark"]["for_model"] == {"reward": "Benchmark it", "preference": "Benchmark it"}
    listed = world.client.get("/api/v1/system/methods").json()
    assert [method["name"] for method in listed["methods"]] == [*methods()]
    assert listed["left_out"] == []
