"""Nothing that a voter gets before the vote gives away who answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import delete, select, update

from steerboard.accounts.http import event_stream
from steerboard.accounts.tables import AuditEntry
from steerboard.arena.tables import Turn
from steerboard.platform.database import transaction
from steerboard.playground.tables import PlaygroundAnswer
from steerboard.runs.tables import WorkerRow
from support.rows.arena_world import NAMES, PROJECT, ArenaWorld, write_answers


def comparison_of(world: ArenaWorld, battle: Any) -> str:
    with world.sessions() as session:
        return str(session.scalars(select(Turn.comparison_id).where(Turn.battle_id == battle["id"])).one())


def note(world: ArenaWorld, **values: Any) -> None:
    with transaction(world.sessions) as session:
        session.execute(update(PlaygroundAnswer).values(**values))


def test_no_answer_before_the_vote_names_an_entrant(world: ArenaWorld) -> None:
    world.arena(names=NAMES, sides=4)
    anna = world.person("anna", "engineer")
    battle = anna.begin()
    said = [battle]
    # What a worker notes of a column names its model, and so do its errors.
    note(world, waits_for=f"loading {NAMES[0]}", error={"code": "x", "title": NAMES[0], "detail": NAMES[1]})
    said.append(anna.get(f"battles/{battle['id']}"))
    note(world, error=None)
    write_answers(world.sessions, battle["id"], ("Yes.", "No.", "So.", "Oh."))
    said.append(anna.get(f"battles/{battle['id']}"))
    said.append(anna.again(battle, "Sure?"))
    said.append(anna.vote(battle, "a", status=409))
    text = json.dumps(said)
    assert [name for name in (*NAMES, "endpoint", "reused", "seconds") if name in text] == []


def test_the_list_of_workers_tells_nothing_of_what_answers_just_now(world: ArenaWorld) -> None:
    """Neither by an order nor by the load of the playground's GPU. A worker leaves out what battles load, see
    `test_battles_leave_no_trace_in_the_list_of_workers`."""
    gpu = {"id": "0", "name": "H100", "memory": 80 << 30, "utilization": 0.75, "memory_used": 30 << 30}
    devices = {"ids": ["0"], "gpus": [gpu]}
    project_id = str(world.project.id)
    world.arena()
    anna = world.person("anna", "engineer")
    anna.answered()
    shown = []
    for order in (NAMES, NAMES[::-1]):
        holds = [{"project_id": project_id, "name": name} for name in order]
        with transaction(world.sessions) as session:
            session.execute(delete(WorkerRow))
            session.add(WorkerRow(name="w", pool="interactive", host="h", pid=1, devices=devices, holds=holds))
        (worker,) = anna.client.get("/api/v1/system/workers").json()
        shown.append((worker["holds"], worker["devices"]))
    about = {"ids": ["0"], "gpus": [{"id": "0", "name": "H100", "memory": 80 << 30}]}
    assert shown == [(sorted(NAMES), about)] * 2


def test_the_stream_names_nobody_and_ends_with_all_answers(world: ArenaWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.arena(names=NAMES[:3], sides=3)
    anna = world.person("anna")
    battle = anna.answered(texts=("Yes, 🍵.", "No.", "Oh!"))
    monkeypatch.setattr(event_stream, "LIFE_SECONDS", 5.0)
    text = anna.client.get(f"{PROJECT}/battles/{battle['id']}/stream").text
    changes = [json.loads(line[6:]) for line in text.splitlines() if line.startswith('data: {"side')]
    assert [(change["side"], change["state"], change["text"]) for change in changes] == [
        ("a", "succeeded", "Yes, 🍵."),
        ("b", "succeeded", "No."),
        ("c", "succeeded", "Oh!"),
    ]
    assert "event: end" in text
    assert [name for name in (*NAMES, "endpoint", "model", "seconds") if name in text] == []


def test_the_playground_does_not_know_the_comparisons_of_battles(world: ArenaWorld) -> None:
    world.arena()
    anna = world.person("anna", "engineer")
    battle = anna.answered()
    hidden = comparison_of(world, battle)
    for path in ("", "/stream"):
        anna.get(f"playground/comparisons/{hidden}{path}", status=404)
    anna.post(f"playground/comparisons/{hidden}/cancel", None, 404)
    assert anna.get("playground/comparisons")["items"] == []


def test_an_answer_is_not_reused_into_or_out_of_a_battle(world: ArenaWorld) -> None:
    """`reused` would tell who had answered."""
    world.arena()
    anna = world.person("anna", "engineer")
    battle = anna.answered()
    seed = 0
    with world.sessions() as session:
        seed = session.scalars(select(PlaygroundAnswer.seed)).first() or 0
    columns = [{"endpoint": name} for name in NAMES[:2]]
    asked = {"prompt": "What is tea?", "columns": columns, "seed": seed}
    compared = anna.post("playground/comparisons", asked, 201)
    assert [column["reused"] for column in compared["columns"]] == [False, False]
    assert battle["turns"][0]["sides"][0]["state"] == "queued"


def test_nobody_sees_the_battles_of_others(world: ArenaWorld) -> None:
    world.arena()
    anna, ben = world.person("anna"), world.person("ben", "owner")
    battle = anna.answered()
    ben.get(f"battles/{battle['id']}", status=404)
    ben.get(f"battles/{battle['id']}/stream", status=404)
    assert ben.vote(battle, "a", status=404)["code"] == "unknown_battle"
    assert ben.again(battle, "And?", status=404)["code"] == "unknown_battle"


def test_the_audit_log_names_no_entrant_of_a_battle(world: ArenaWorld) -> None:
    world.arena()
    anna = world.person("anna")
    anna.vote(anna.answered(), "a")
    with world.sessions() as session:
        noted = {entry.action: entry.detail for entry in session.scalars(select(AuditEntry))}
    assert noted["arena.battle"] == {"arena": "quokka"}
    assert noted["arena.vote"] == {"verdict": "a"}


def test_an_annotator_votes_and_reads_no_figures_and_a_viewer_reads_and_does_not_vote(world: ArenaWorld) -> None:
    world.arena()
    anna, vera = world.person("anna"), world.person("vera", "viewer")
    assert [arena["name"] for arena in anna.get("arenas")["items"]] == ["quokka"]
    anna.get("arenas/quokka/leaderboard", status=403)
    anna.get("arenas/quokka/export", status=403)
    anna.post("arenas", {"name": "x", "entrants": [{"endpoint": name} for name in NAMES[:2]]}, 403)
    anna.post("arenas/quokka/close", None, 403)
    vera.get("arenas/quokka/leaderboard")
    assert vera.begin(status=403)["code"] == "missing_scope"


def test_seed_and_sides_are_in_no_answer(world: ArenaWorld) -> None:
    made = world.arena(seed=123456789)
    assert "123456789" not in json.dumps([made, world.get("arenas/quokka"), world.get("arenas")])
