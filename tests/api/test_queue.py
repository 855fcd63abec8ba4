"""The queue of a pool over HTTP: the places of runs, and moving them."""

from __future__ import annotations

import datetime as dt
import threading
import uuid
from typing import Any

import pytest
from api_world import ApiWorld
from sqlalchemy import select

from steerboard.accounts.access import Caller
from steerboard.accounts.tables import AuditEntry, Membership, Project, User
from steerboard.platform.database import transaction
from steerboard.platform.events.tables import Event
from steerboard.runs import queue
from steerboard.runs.schemas.requests import RunPlace
from steerboard.runs.state import claims
from steerboard.runs.tables import Run


@pytest.fixture
def names(world: ApiWorld) -> list[str]:
    """Five queued runs, in the order of their start."""
    return [start(world) for _ in range(5)]


def start(world: ApiWorld, **body: Any) -> str:
    asked = {"config": {"run": "generate", "prompts": ["Hello?"]}, "inputs": {"model": "tiny"}, "reuse": False, **body}
    name: str = world.post("runs", asked, status=201)["name"]
    return name


def move(world: ApiWorld, run: str, status: int = 200, **body: Any) -> Any:
    return world._checked(world.client.patch(world.url(f"runs/{run}"), json=body), status)


def order(world: ApiWorld, pool: str = "default", **headers: str) -> list[tuple[int, str]]:
    shown = world.client.get(f"/api/v1/system/queues/{pool}", headers=headers).json()
    return [(run["position"], run["name"]) for run in shown["runs"]]


def claimed(world: ApiWorld) -> list[str]:
    """The names of all queued runs as workers take them."""
    taken = []
    with transaction(world.sessions) as session:
        while claim := claims.claim_next(session, pool="default", owner="w", worker="w", devices=1, lease_seconds=9):
            taken.append(session.get_one(Run, claim.run_id).name)
    return taken


def set_run(world: ApiWorld, name: str, **values: Any) -> None:
    with transaction(world.sessions) as session:
        run = session.scalars(select(Run).where(Run.name == name)).one()
        for key, value in values.items():
            setattr(run, key, value)


def test_runs_stand_in_the_order_in_which_workers_take_them(world: ApiWorld, names: list[str]) -> None:
    a, b, c, d, e = names
    move(world, d, priority=5)
    move(world, e, place="first")
    move(world, b, place="last")
    shown = order(world)
    assert shown == [(1, d), (2, e), (3, a), (4, c), (5, b)]
    assert [world.get(f"runs/{name}")["queue_position"] for _, name in shown] == [1, 2, 3, 4, 5]
    assert claimed(world) == [name for _, name in shown]
    assert world.get(f"runs/{a}")["queue_position"] is None


def test_the_first_place_is_among_the_runs_of_the_same_priority(world: ApiWorld, names: list[str]) -> None:
    a, b, *_ = names
    assert move(world, a, priority=-100)["queue_position"] == 5
    assert move(world, a, place="first")["queue_position"] == 5
    assert move(world, a, priority=0)["queue_position"] == 1
    moved = move(world, b, priority=3, place="last")
    assert (moved["priority"], moved["queue_position"]) == (3, 1)


def test_a_run_that_pauses_before_its_next_attempt_stands_behind_those_that_are_due(
    world: ApiWorld, names: list[str]
) -> None:
    set_run(world, names[0], not_before=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1), priority=9)
    assert order(world)[-1] == (5, names[0])
    assert claimed(world) == names[1:]


def test_a_run_that_has_started_or_ended_is_not_moved(world: ApiWorld, names: list[str]) -> None:
    started, ended, *_ = names
    world.claim()
    world.post(f"runs/{ended}/cancel")
    for run in (started, ended):
        assert move(world, run, status=409, place="first")["code"] == "run_not_waiting"
    assert [name for _, name in order(world)] == names[2:]


def test_a_move_waits_for_a_claim_under_way_and_then_finds_the_run_started(world: ApiWorld, names: list[str]) -> None:
    answers: list[Any] = []
    with transaction(world.sessions) as session:
        claims.claim_next(session, pool="default", owner="w", worker="w", devices=1, lease_seconds=9)
        mover = threading.Thread(target=lambda: answers.append(move(world, names[0], status=409, priority=7)))
        mover.start()
        mover.join(timeout=0.5)
        assert mover.is_alive()
    mover.join()
    assert answers[0]["code"] == "run_not_waiting"
    assert world.get(f"runs/{names[0]}")["priority"] == 0


def test_runs_of_two_projects_that_go_first_at_once_get_places_of_their_own(world: ApiWorld, names: list[str]) -> None:
    with transaction(world.sessions) as session:
        other = Project(name="other", split_salt="s", held_out_fraction=0.1)
        session.add(other)
        session.flush()
        theirs = session.scalars(select(Run).where(Run.name == names[3])).one()
        theirs.project_id = other.id
    mover = threading.Thread(target=move, args=(world, names[4]), kwargs={"place": "first"})
    with transaction(world.sessions) as session:
        queue.move_in_queue(session, session.get_one(Run, theirs.id), RunPlace(place="first"))
        mover.start()
        mover.join(timeout=0.5)
        assert mover.is_alive()
    mover.join()
    assert [name for _, name in order(world)] == [names[4], names[3], *names[:3]]


def test_a_pending_run_keeps_its_new_place_and_its_pipeline_keeps_its_order(world: ApiWorld, names: list[str]) -> None:
    world.start()
    moved = move(world, "small-1.sft", place="first", priority=1)
    assert (moved["state"], moved["queue_position"], moved["priority"]) == ("pending", None, 1)
    assert [run["name"] for run in world.get("pipelines/small-1")["runs"]] == ["chosen", "sft", "reward"]
    move(world, "small-1.chosen", priority=100)
    world.work()
    assert order(world)[0] == (1, "sft")


def test_shards_move_with_their_run(world: ApiWorld, names: list[str]) -> None:
    world.dataset("prompts", "prompts")
    config = {"run": "generate", "shards": 3}
    run = start(world, config=config, inputs={"model": "tiny", "data": "prompts"})
    move(world, run, place="first")
    assert order(world) == [*enumerate([f"{run}.0", f"{run}.1", f"{run}.2", *names], start=1)]


def test_wrong_moves_are_refused(world: ApiWorld, names: list[str]) -> None:
    for body in ({}, {"priority": 101}, {"priority": -101}, {"place": "middle"}, {"pool": "gpu"}):
        assert move(world, names[0], status=422, **body)["code"] == "invalid_request"
    assert move(world, "nope", status=404, priority=1)["code"] == "not_found"
    url = world.url(f"runs/{names[0]}")
    answer = world.client.patch(url, json={"priority": 1}, headers=world.token("read", "write"))
    assert (answer.status_code, answer.json()["code"]) == (403, "missing_scope")


def test_a_move_leaves_an_audit_row_and_an_event(world: ApiWorld, names: list[str]) -> None:
    run = move(world, names[1], priority=4, place="first")
    with transaction(world.sessions) as session:
        entry = session.scalars(select(AuditEntry).where(AuditEntry.action == "run.move")).one()
        event = session.scalars(select(Event).where(Event.type == "run.moved")).one()
    assert entry.detail == {"priority": 4, "place": "first"}
    assert (event.payload["run_id"], event.payload["priority"]) == (run["id"], 4)


def test_others_runs_count_in_the_queue_and_are_not_shown(world: ApiWorld, names: list[str]) -> None:
    with transaction(world.sessions) as session:
        other = Project(name="other", split_salt="s", held_out_fraction=0.1)
        person = User(name="eve")
        session.add_all([other, person])
        session.flush()
        session.add(Membership(project_id=other.id, user_id=person.id, role="viewer"))
        session.scalars(select(Run).where(Run.name == names[2])).one().project_id = other.id
    theirs = world.token("read", project=other)
    shown = world.client.get("/api/v1/system/queues/default", headers=theirs).json()
    assert (shown["queued"], [(run["position"], run["name"]) for run in shown["runs"]]) == (5, [(3, names[2])])
    assert order(world, **world.token("read")) == [(1, names[0]), (2, names[1]), (4, names[3]), (5, names[4])]
    assert [position for position, _ in order(world)] == [1, 2, 3, 4, 5]
    with transaction(world.sessions) as session:
        seen = queue.waiting(session, Caller("user:eve", "", person.id, None, None), "default", 10)
    assert [run.name for run in seen.runs] == [names[2]]
    assert order(world, "empty") == []


def test_a_long_queue_is_cut_to_what_was_asked_for(world: ApiWorld, names: list[str]) -> None:
    shown = world.client.get("/api/v1/system/queues/default", params={"limit": 2}).json()
    assert (shown["queued"], [run["name"] for run in shown["runs"]]) == (5, names[:2])
    assert uuid.UUID(shown["runs"][0]["id"])
