"""Juries over HTTP."""

from __future__ import annotations

from typing import Any

from judge_world import PROJECT, JudgeWorld

JURIES = f"{PROJECT}/evaluations/e/juries"


def jury(world: JudgeWorld, *judges: str, name: str = "panel", **more: Any) -> Any:
    return world.client.post(JURIES, json={"name": name, "judges": judges, **more})


def test_a_jury_is_a_source_of_the_report_until_it_is_deleted(world: JudgeWorld) -> None:
    world.evaluation(prompts=8)
    for name in ("one", "two"):
        world.judged("single", name=name, seed=1 if name == "one" else 2)
    made = jury(world, "one", "two", rule="mean")
    assert made.status_code == 201, made.text
    assert (made.json()["judges"], made.json()["rule"]) == (["one", "two"], "mean")
    report = world.client.get(f"{PROJECT}/evaluations/e/report").json()
    assert [(panel["jury"], panel["valid"]) for panel in report["juries"]] == [("panel", True)]
    (listed,) = world.client.get(JURIES).json()["items"]
    assert listed == made.json()
    assert world.client.delete(f"{JURIES}/panel").status_code == 204
    assert world.client.get(JURIES).json()["items"] == []
    assert world.client.get(f"{PROJECT}/evaluations/e/report").json()["juries"] == []
    actions = [entry["action"] for entry in world.client.get(f"{PROJECT}/audit").json()["items"]]
    assert actions[:2] == ["jury.delete", "jury.create"]


def test_a_deleted_judge_leaves_its_jury(world: JudgeWorld) -> None:
    world.evaluation(prompts=1)
    for name in ("one", "two"):
        world.judged("single", name=name)
    jury(world, "one", "two")
    assert world.client.delete(f"{PROJECT}/evaluations/e/judges/two").status_code == 204
    assert world.client.get(JURIES).json()["items"][0]["judges"] == ["one"]
    (panel,) = world.client.get(f"{PROJECT}/evaluations/e/report").json()["juries"]
    assert not panel["valid"]


def test_what_makes_no_jury_is_refused(world: JudgeWorld) -> None:
    world.evaluation(prompts=1)
    for name in ("one", "two"):
        world.judged("single", name=name)
    assert jury(world, "one").status_code == 422
    assert jury(world, "one", "one").json()["code"] == "invalid_judge"
    assert jury(world, "one", "three").json()["code"] == "unknown_judge"
    assert jury(world, "one", "two", name="one").json()["code"] == "name_taken"
    assert jury(world, "one", "two").status_code == 201
    taken = world.client.post(
        f"{PROJECT}/evaluations/e/judges", json={"name": "panel", "style": "single", "endpoint": "gpt-judge"}
    )
    assert taken.json()["code"] == "name_taken"
    assert world.client.delete(f"{JURIES}/none").json()["code"] == "unknown_jury"
