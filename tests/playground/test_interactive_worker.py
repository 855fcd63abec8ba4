from __future__ import annotations

import datetime as dt
import signal
import uuid
from pathlib import Path
from typing import Any

import pytest
from playground_world import PlaygroundWorld, model_processes, worker_process, working
from sqlalchemy import update

from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard.platform.storage.local_cache import LocalCache
from steerboard.playground.schemas import ComparisonIn
from steerboard.playground.service import create_comparison
from steerboard.playground.tables import Comparison
from steerboard_contracts.errors import OutOfMemory
from steerboard_workers.interactive.errors import with_memory
from steerboard_workers.interactive.models import ModelCache
from steerboard_workers.interactive.worker import InteractiveWorker
from support.patience import wait_until

SHORT = {"max_new_tokens": 20}


def column(score: float, model: str = "dt", **decoding: Any) -> dict[str, Any]:
    return {"model": model, "score": score, "decoding": SHORT | decoding}


def workers(world: PlaygroundWorld) -> list[dict[str, Any]]:
    rows = world.client.get("/api/v1/system/workers").json()
    return [worker for worker in rows if worker["pool"] == "interactive"]


@pytest.mark.long
def test_an_answer_survives_the_kill_of_its_worker(world: PlaygroundWorld, tmp_path: Path) -> None:
    quick = {"STEERBOARD_LEASE_SECONDS": "6", "STEERBOARD_POLL_SECONDS": "0.3"}
    made = world.compare(column(1), column(2, max_new_tokens=1900), reward="reward")
    with worker_process(tmp_path / "first.log", **quick) as first:
        # The first group has ended, and the second one is being written.
        wait_until(lambda: world.comparison(made)["columns"][1]["tokens"] > 20)
        before = world.comparison(made)["columns"]
        assert before[0]["state"] == "succeeded"
        first.send_signal(signal.SIGKILL)
        first.wait()
        with worker_process(tmp_path / "second.log", **quick):
            done = world.finish(made, seconds=300)["columns"]
    assert done[0] == before[0], "what had ended stays"
    assert (done[1]["state"], done[1]["tokens"]) == ("succeeded", 1900)
    assert done[1]["text"].startswith(before[1]["text"]), "the same answer, from its beginning"


@pytest.mark.long
def test_a_worker_that_is_stopped_gives_back_what_it_serves(world: PlaygroundWorld, settings: Settings) -> None:
    made = world.compare(column(1, max_new_tokens=400))
    with working(settings):
        wait_until(lambda: world.comparison(made)["columns"][0]["tokens"] > 5)
    assert workers(world) == [], "it has left the list"
    with transaction(world.sessions) as session:
        given_back = session.get_one(Comparison, uuid.UUID(made["id"]))
        assert (given_back.lease_owner, given_back.attempt) == (None, 0), "nobody waits for the lease to run out"
    with working(settings):
        answer = world.finish(made)["columns"][0]
    assert (answer["state"], answer["tokens"]) == ("succeeded", 400)


def test_what_brings_down_worker_after_worker_is_given_up(world: PlaygroundWorld, settings: Settings) -> None:
    made = world.compare(column(1))
    with transaction(world.sessions) as session:
        session.execute(update(Comparison).values(attempt=3))
    with working(settings):
        answer = world.finish(made)["columns"][0]
        assert (answer["state"], answer["error"]["code"]) == ("failed", "worker_lost")
        assert world.finish(world.compare(column(2)))["columns"][0]["state"] == "succeeded"


@pytest.mark.long
def test_used_models_stay_loaded_within_the_bound(world: PlaygroundWorld, settings: Settings) -> None:
    for name in ("dt-2", "dt-3"):
        world.register(name, "dt")
    # One model needs some 0.5 MB, and its process 300: two fit, and three do not.
    with working(settings.model_copy(update={"interactive_memory_mb": 700})):
        for seed, name in enumerate(("dt", "dt-2", "dt")):
            world.finish(world.compare(column(1, model=name), seed=seed))
        wait_until(lambda: workers(world)[0]["holds"] == ["dt", "dt-2"])
        world.finish(world.compare(column(1, model="dt-3")))
        wait_until(lambda: workers(world)[0]["holds"] == ["dt", "dt-3"])
        wait_until(lambda: len(model_processes()) == 2)
    assert model_processes() == {}


@pytest.mark.long
def test_battles_leave_no_trace_in_the_list_of_workers(world: PlaygroundWorld, settings: Settings) -> None:
    """Neither what they load, nor what leaves for it: both would tell an arena's voter who answers."""
    names = ("dt-2", "dt-3")
    for name in names:
        world.register(name, "dt")
    asked = ComparisonIn.model_validate({"prompt": "say red", "columns": [column(1, model=name) for name in names]})
    seen: set[tuple[str, ...]] = set()

    def listed() -> tuple[str, ...]:
        (worker,) = workers(world)
        seen.add(tuple(worker["holds"]))
        return tuple(worker["holds"])

    # Two models fit, see above: the second one of the battle takes the place of what was there.
    quick = {"interactive_memory_mb": 700, "heartbeat_seconds": 0.05}
    with working(settings.model_copy(update=quick)):
        world.finish(world.compare(column(1)))
        wait_until(lambda: listed() == ("dt",))
        seen.clear()
        before = set(model_processes())
        with transaction(world.sessions) as session:
            project, prompts = session.merge(world.project), [asked.prompt] * len(names)
            battle = create_comparison(session, project, asked, "test", blind=True, prompts=prompts).id

        def ended() -> dt.datetime | None:
            listed()
            with world.sessions() as session:
                return session.get_one(Comparison, battle).ended_at

        wait_until(lambda: ended() is not None)
        wait_until(lambda: not before & set(model_processes()))
        at = ended()
        assert at is not None
        wait_until(lambda: dt.datetime.fromisoformat(workers(world)[0]["heartbeat_at"]) > at + dt.timedelta(seconds=1))
        listed()
        assert seen == {("dt",)}
        # What people use in the open is in the list, as ever.
        world.finish(world.compare(column(2, model="dt-3")))
        wait_until(lambda: listed() == ("dt", "dt-3"))


def test_a_model_beyond_the_bound_is_refused_by_its_size(world: PlaygroundWorld, settings: Settings) -> None:
    with working(settings.model_copy(update={"interactive_memory_mb": 200})):
        error = world.finish(world.compare(column(1)))["columns"][0]["error"]
    assert error["code"] == "model_too_large"
    assert "STEERBOARD_INTERACTIVE_MEMORY_MB" in error["hint"]


def test_memory_that_runs_out_is_freed_for_a_second_try(
    world: PlaygroundWorld, settings: Settings, tmp_path: Path
) -> None:
    model_id = uuid.UUID(world.register("other", "dt"))
    models = ModelCache(world.sessions, world.store, LocalCache(tmp_path, None), settings)
    tries: list[bool] = []

    def work(fails: int) -> str:
        tries.append(models.at_hand(model_id))
        if len(tries) <= fails:
            raise OutOfMemory("DefaultCPUAllocator: can't allocate memory")
        return "done"

    try:
        with models.using(model_id, lambda: None):
            pass
        assert with_memory(models, lambda: work(1)) == "done"
        assert tries == [True, False], "the second try has the whole memory"
        tries.clear()
        with pytest.raises(OutOfMemory, match="also with no other model loaded"):
            with_memory(models, lambda: work(2))
    finally:
        models.close()


def test_names_of_held_models_are_for_their_project_alone(world: PlaygroundWorld, worker: InteractiveWorker) -> None:
    world.finish(world.compare(column(1)))
    wait_until(lambda: workers(world)[0]["holds"] == ["dt"])
    other = world.client.post("/api/v1/projects", json={"name": "other"}).json()
    made = world.client.post("/api/v1/projects/other/tokens", json={"name": "ci", "scopes": ["read"]}).json()
    headers = {"Authorization": f"Bearer {made['token']}"}
    listed = world.client.get("/api/v1/system/workers", headers=headers).json()
    assert other["name"] == "other"
    assert [worker["holds"] for worker in listed] == [[]]
