"""Several runs at once: what would happen is shown, and nothing that others need is lost."""

from __future__ import annotations

from typing import Any

import pytest
from api_world import ApiWorld
from sqlalchemy import text

from steerboard.platform.database import transaction
from steerboard.runs.state.sweeper import settle_all


def stages(world: ApiWorld) -> dict[str, str]:
    return {run["name"]: run["id"] for run in world.start()["runs"]}


def change(world: ApiWorld, action: str, *runs: str, status: int = 200, **more: Any) -> Any:
    return world.post("run-changes", {"action": action, "runs": list(runs), **more}, status=status)


def expected(world: ApiWorld, action: str, *runs: str) -> Any:
    return world.post("run-changes/preview", {"action": action, "runs": list(runs)})


def test_a_preview_of_a_cancellation_names_the_runs_that_end_with_it_and_changes_nothing(world: ApiWorld) -> None:
    made = stages(world)
    (one,) = expected(world, "cancel", made["chosen"])["done"]
    assert [run["name"] for run in one["ends"]] == ["small-1.sft", "small-1.reward"]
    assert world.get("runs/small-1.chosen")["state"] == "queued"
    change(world, "cancel", made["chosen"])
    settle_all(world.sessions)
    assert {run["state"] for run in world.get("runs")["items"]} == {"cancelled"}
    (skipped,) = expected(world, "cancel", made["chosen"])["skipped"]
    assert skipped["why"] == "it has ended: cancelled"


def test_a_stage_is_deleted_only_with_all_of_its_pipeline(world: ApiWorld) -> None:
    made = stages(world)
    (active,) = expected(world, "delete", made["reward"])["skipped"]
    assert active["why"] == "it is pending; cancel it first"
    change(world, "cancel", *made.values())
    (alone,) = expected(world, "delete", made["reward"])["skipped"]
    assert {one["id"] for one in alone["needs"]} == {made["sft"], made["chosen"]}
    problem = change(world, "delete", made["reward"], status=409)
    assert problem["code"] == "runs_blocked"
    assert problem["errors"][0]["location"] == "small-1.reward"
    done = expected(world, "delete", *made.values())["done"]
    assert {thing["name"] for one in done for thing in one["loses"]} == {"small-1"}
    change(world, "delete", *made.values())
    assert world.get("runs")["items"] == []
    assert world.get("pipelines")["items"] == []


def test_what_a_deleted_run_made_stays_and_a_run_that_others_read_is_kept(world: ApiWorld) -> None:
    first = stages(world)
    world.work()
    dataset = world.get("runs/small-1.chosen")["outputs"][0]["label"]
    second = stages(world)  # which reuses what the first one made
    change(world, "cancel", first["sft"], first["reward"], second["sft"], second["reward"])
    skipped = expected(world, "delete", *first.values())["skipped"]
    by_name = {one["run"]["name"]: one for one in skipped}
    assert by_name["small-1.chosen"]["why"] == "small-2.chosen used what it made"
    assert by_name["small-1.sft"]["why"].startswith("its pipeline keeps")
    both = expected(world, "delete", *first.values(), *second.values())
    assert both["skipped"] == []
    assert {thing["name"] for one in both["done"] for thing in one["keeps"]} == {dataset}
    change(world, "delete", *first.values(), *second.values())
    assert world.get(f"datasets/{dataset}")["run_id"] is None
    assert world.client.delete(world.url(f"datasets/{dataset}")).status_code == 204


def test_only_those_that_can_be_deleted_are_where_the_others_are_skipped(world: ApiWorld) -> None:
    made = stages(world)
    alone = world.post(
        "runs",
        {"config": {"run": "mix", "parts": [{"side": "chosen"}], "size": 5}, "inputs": {"parts.0": "hh"}},
        status=201,
    )
    change(world, "cancel", alone["id"])
    result = change(world, "delete", alone["id"], made["sft"], skip=True)
    assert [one["run"]["id"] for one in result["done"]] == [alone["id"]]
    assert world.get(f"runs/{alone['id']}", status=404)["code"] == "not_found"
    assert world.get("runs/small-1.sft")["id"] == made["sft"]


def test_every_table_that_refers_to_runs_is_emptied_or_asked_before_a_deletion(world: ApiWorld) -> None:
    """A new table that refers to runs has to be thought of: `OF_A_RUN`, a cascade, or a reason to refuse."""
    known = {
        *("run_inputs", "run_outputs", "run_transitions", "run_attempts", "metrics", "probe_steps", "sampled_groups"),
        *(
            "live_pairs",
            "run_logs",
            "run_checkpoints",
            "runs",
            "run_facts",
            "run_words",
            "run_exports",
            "fine_tuning_jobs",
            "reward_judges",
        ),
        *("evaluations", "evaluation_entrants", "evaluation_reward_assessments", "evaluation_judges"),
    }
    query = "SELECT DISTINCT conrelid::regclass::text FROM pg_constraint WHERE confrelid = 'runs'::regclass"
    with transaction(world.sessions) as session:
        referring = set(session.scalars(text(query)))
    assert referring - known == set()


def test_tags_are_changed_for_all_and_others_may_not(world: ApiWorld) -> None:
    made = stages(world)
    change(world, "tag", *made.values(), add_tags=["a", "b"])
    change(world, "tag", made["sft"], remove_tags=["a"])
    tags = {run["name"]: run["marks"]["tags"] for run in world.get("runs")["items"]}
    assert tags == {"reward": ["a", "b"], "chosen": ["a", "b"], "sft": ["b"]}
    assert change(world, "tag", made["sft"], status=422)["code"] == "invalid_request"
    body = {"action": "archive", "runs": [made["sft"]]}
    refused = world.client.post(world.url("run-changes"), json=body, headers=world.token("read"))
    assert refused.json()["code"] == "missing_scope"


@pytest.mark.parametrize("action", ["archive", "cancel", "delete"])
def test_another_projects_run_is_not_found(world: ApiWorld, action: str) -> None:
    missing = "0193a1b2-0000-7000-8000-000000000000"
    assert change(world, action, missing, status=404)["code"] == "not_found"
