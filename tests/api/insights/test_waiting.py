"""Tasks waiting for a person: failures that no one resolved, rows that no dataset has."""

from __future__ import annotations

import datetime as dt

from api_world import ApiWorld
from sqlalchemy import func, update

from steerboard.platform.database import transaction
from steerboard.runs.tables import Run


def kinds(world: ApiWorld) -> list[tuple[str, str]]:
    return [(item["kind"], item["title"]) for item in world.get("waiting")["items"]]


def test_a_failed_pipeline_waits_until_its_recipe_succeeds(world: ApiWorld) -> None:
    failed = world.start()
    assert kinds(world) == []
    world.work(fail="bad_input")
    (item,) = world.get("waiting")["items"]
    assert (item["kind"], item["title"], item["link"]) == (
        "failed_pipeline",
        "small-1 failed",
        {"page": "pipeline", "id": failed["id"]},
    )
    assert item["detail"].startswith("chosen: it went wrong")
    world.start()
    assert kinds(world) == [("failed_pipeline", "small-1 failed")]
    for _ in range(3):
        world.work()
    assert kinds(world) == []


def test_a_failure_of_another_recipe_or_before_a_success_stays_its_own(world: ApiWorld) -> None:
    world.start()
    for _ in range(3):
        world.work()
    world.start("sft.epochs=2")
    world.work(fail="bad_input")
    assert kinds(world) == [("failed_pipeline", "small-2 failed")]


def test_an_old_failure_waits_no_longer(world: ApiWorld) -> None:
    world.start()
    world.work(fail="bad_input")
    with transaction(world.sessions) as session:
        session.execute(update(Run).values(ended_at=func.now() - dt.timedelta(days=8)))
    assert kinds(world) == []


def test_a_resumed_pipeline_waits_no_longer(world: ApiWorld) -> None:
    world.start()
    run = world.work(fail="bad_input")
    world.post(f"runs/{run.id}/resume")
    assert kinds(world) == []


def test_rows_of_a_collection_wait_for_a_dataset(world: ApiWorld) -> None:
    made = world.post("collections", {"name": "good", "kind": "instructions"}, 201)
    assert kinds(world) == []
    row = world.post("collections/good/rows", {"sample": {"prompt": "Hi", "response": "Hello"}}, 201)
    (item,) = world.get("waiting")["items"]
    assert (item["kind"], item["title"], item["detail"], item["at"], item["link"]) == (
        "collection",
        "good",
        "1 row is in no dataset yet",
        row["created_at"],
        {"page": "collection", "id": made["id"]},
    )
    world.post("collections/good/dataset", status=201)
    assert kinds(world) == []
