"""Agents start work: checked first, refused with what the check found, and never beyond their token's scopes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from agent import Agent, Where, ask
from api_world import RECIPE, ApiWorld

SFT: dict[str, Any] = {"kind": "reward_model", "inputs": {"model": "tiny", "data": "hh"}}
SMALL: dict[str, Any] = {"text": RECIPE, "settings": {"base": "tiny", "data": "hh"}}


def runs_of(world: ApiWorld) -> list[str]:
    return [run["name"] for run in world.get("runs")["items"]]


@pytest.mark.parametrize(("kind", "given"), [("run", SFT), ("recipe", SMALL)])
def test_a_start_is_refused_by_its_check_until_the_problem_is_accepted(
    world: ApiWorld, where: Where, kind: str, given: dict[str, Any]
) -> None:
    async def start(agent: Agent) -> None:
        check = await agent.call(f"check_{kind}", **given)
        assert check["ok"] is False
        assert [problem["code"] for problem in check["check"]["problems"]] == ["no_worker"]
        assert "unknown" in check["check"]["estimate"]
        refused = await agent.refused(f"start_{kind}", **given)
        assert refused["code"] == "preflight_failed"
        assert refused["check"]["problems"] == check["check"]["problems"]
        assert 'accept=["no_worker"]' in refused["hint"]
        assert runs_of(world) == []
        budget = await agent.refused(f"start_{kind}", **given, accept=["no_worker"], max_device_hours=1)
        assert budget["code"] == "over_budget"
        assert runs_of(world) == []
        started = await agent.call(f"start_{kind}", **given, accept=["no_worker"])
        assert started["check"]["problems"] == check["check"]["problems"]
        assert started["started"]["url"].endswith(started["started"].get("id", started["started"]["name"]))

    ask(where, start)
    assert len(runs_of(world)) == (1 if kind == "run" else 3)


def test_faults_come_with_their_place_before_anything_starts(world: ApiWorld, inside: Where) -> None:
    async def start(agent: Agent) -> None:
        typo = await agent.refused("start_run", **SFT, settings={"lrr": 1})
        assert typo["status"] == 422
        assert any("lrr" in place["location"] for place in typo["errors"])
        slot = await agent.refused("check_run", kind="reward_model", inputs={"model": "tiny"})
        assert slot["status"] == 422
        unknown = await agent.refused("check_run", kind="reward_models")
        assert unknown["code"] == "unknown_kind"
        assert "reward_model" in unknown["hint"]
        broken = await agent.refused("start_recipe", text=RECIPE, settings={"base": "tiny", "data": "hh", "sft.lrr": 1})
        assert broken["errors"]
        assert (await agent.refused("start_recipe"))["code"] == "bad_arguments"
        entrant = await agent.refused("evaluate", name="e", prompts="hh", entrants=["nothing-like-it"])
        assert entrant["code"] == "empty_selection"  # it has no held-out prompts

    ask(inside, start)
    assert runs_of(world) == []


def test_a_reader_reads_and_checks_and_is_refused_what_changes_something(world: ApiWorld, http: Where) -> None:
    world.start()
    reader = replace(http, token=world.token("read")["Authorization"].removeprefix("Bearer "))

    async def work(agent: Agent) -> None:
        assert len((await agent.call("list", what="runs"))["items"]) == 3
        assert (await agent.call("check_run", **SFT))["ok"] is False
        for tool, arguments in (
            ("start_run", {**SFT, "accept": ["no_worker"]}),
            ("start_recipe", {**SMALL, "accept": ["no_worker"]}),
            ("cancel", {"what": "pipelines", "name": "small-1", "confirm": True}),
            ("archive", {"what": "datasets", "name": "hh", "confirm": True}),
            ("delete", {"what": "runs", "name": "small-1.sft", "confirm": True}),
        ):
            refused = await agent.refused(tool, **arguments)
            assert (tool, refused["code"], refused["status"]) == (tool, "missing_scope", 403)
            assert "scope" in refused["detail"]
            assert refused["hint"]

    ask(reader, work)
    assert len(runs_of(world)) == 3
    assert world.get("pipelines/small-1")["state"] != "cancelled"


def test_a_recipes_cost_is_told_stage_by_stage_from_its_last_pipeline(world: ApiWorld, inside: Where) -> None:
    world.start()
    for seconds in (2.0, 30.0, 4.0):
        world.work(seconds=seconds)
    took = {run["name"]: run["device_seconds"] for run in world.get("pipelines/small-1")["runs"]}
    assert set(took.values()) == {2.0, 30.0, 4.0}

    async def check(agent: Agent) -> None:
        checked = (await agent.call("check_recipe", **SMALL))["check"]
        costs = {stage["name"]: stage["estimate"] for stage in checked["stages"]}
        for name in ("sft", "reward"):  # a model of this recipe is their input
            assert (costs[name]["device_seconds"], costs[name]["by"]) == (took[name], ["small-1"])
        assert costs["chosen"]["device_seconds"] > 0
        whole = checked["estimate"]
        assert whole["device_seconds"] == pytest.approx(
            sum(cost["device_seconds"] for cost in costs.values()), abs=0.01
        )
        budget = await agent.refused("start_recipe", **SMALL, accept=["no_worker"], max_device_hours=0.001)
        assert budget["code"] == "over_budget"
        started = await agent.call("start_recipe", **SMALL, accept=["no_worker"], max_device_hours=1)
        assert started["started"]["name"] == "small-2"

    ask(inside, check)


def test_what_one_stage_costs_is_no_cost_of_the_whole(world: ApiWorld, inside: Where) -> None:
    world.start()
    world.work(seconds=3.0)

    async def check(agent: Agent) -> None:
        checked = (await agent.call("check_recipe", **SMALL))["check"]
        costs = {stage["name"]: stage["estimate"] for stage in checked["stages"]}
        assert "unknown" in costs["reward"]
        assert checked["estimate"]["unknown"] == "nothing is known of sft, reward"
        assert checked["estimate"]["known_device_seconds"] == pytest.approx(costs["chosen"]["device_seconds"], abs=0.01)
        budget = await agent.refused("start_recipe", **SMALL, accept=["no_worker"], max_device_hours=1000)
        assert budget["code"] == "over_budget"

    ask(inside, check)
