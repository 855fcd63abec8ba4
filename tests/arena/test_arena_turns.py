"""Battles of several turns: a vote is about those that the voter has seen, and a lost answer asks nothing twice."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import select

from steerboard.accounts.http import event_stream
from steerboard.arena.tables import Turn
from steerboard.datasets.tables import SampleRow
from support.rows.arena_world import PROJECT, ArenaWorld, write_answers

SEEN = ("A drink.", "No.")
UNSEEN = ("Unseen, longer.", "Unseen.")


def asked(world: ArenaWorld) -> int:
    with world.sessions() as session:
        return len(session.scalars(select(Turn.place)).all())


def exported(world: ArenaWorld) -> list[dict[str, Any]]:
    return [json.loads(line) for line in world.owner.get(f"{PROJECT}/arenas/quokka/export").content.splitlines()]


def test_a_vote_is_about_the_turns_that_were_seen_though_another_one_is_answered(world: ArenaWorld) -> None:
    world.arena(categories=["drinks"])
    anna = world.person("anna")
    battle = anna.answered("Tea?", SEEN, category="drinks")
    anna.again(battle, "Unseen?")
    write_answers(world.sessions, battle["id"], UNSEEN)
    voted = anna.vote(battle, "a", turns=1)
    assert (voted["vote"]["verdict"], voted["vote"]["turns"], len(voted["turns"])) == ("a", 1, 2)
    (row,) = exported(world)
    assert (row["turn"], row["category"]) == (1, "drinks")
    assert [row[side][1]["content"] for side in ("conversation_a", "conversation_b")] == list(SEEN)
    made = world.owner.post(f"{PROJECT}/arenas/quokka/preferences", json={"split": "train"}).json()
    with world.sessions() as session:
        pair = session.scalars(select(SampleRow).where(SampleRow.dataset_id == made["id"])).one()
    assert (pair.sample["chosen"], pair.sample["rejected"]) == SEEN
    assert "Unseen" not in json.dumps([row, pair.sample])


@pytest.mark.parametrize("state", ["queued", "failed"])
def test_a_vote_on_what_was_seen_needs_no_answer_to_a_later_turn(world: ArenaWorld, state: str) -> None:
    world.arena()
    anna = world.person("anna")
    battle = anna.answered("Tea?", SEEN)
    anna.again(battle, "Unseen?")
    write_answers(world.sessions, battle["id"], ("", ""), state=state)
    code = "answers_missing" if state == "queued" else "answer_failed"
    assert anna.vote(battle, "b", status=409)["code"] == code, "about all turns"
    assert anna.vote(battle, "b", turns=1)["vote"]["turns"] == 1


def test_without_their_number_a_vote_is_about_all_turns(world: ArenaWorld) -> None:
    world.arena()
    anna = world.person("anna")
    battle = anna.answered("Tea?", SEEN)
    anna.again(battle, "And milk?")
    write_answers(world.sessions, battle["id"], UNSEEN)
    assert anna.vote(battle, "b", turns=3, status=422)["code"] == "unknown_turn"
    assert anna.vote(battle, "b", turns=0, status=422)["code"] == "invalid_request"
    assert anna.vote(battle, "b")["vote"]["turns"] == 2


def test_a_prompt_that_was_seen_before_is_a_repeat_whatever_was_asked_after_it(world: ArenaWorld) -> None:
    world.arena()
    anna = world.person("anna")
    anna.vote(anna.answered("Tea?", SEEN), "a")
    battle = anna.answered("tea?", SEEN)
    anna.again(battle, "Unseen?")
    assert anna.vote(battle, "a", turns=1)["vote"]["counts"] is False


def test_a_turn_whose_answer_was_lost_is_asked_again_without_a_second_one(world: ArenaWorld) -> None:
    world.arena()
    anna = world.person("anna")
    battle = anna.answered("Tea?", SEEN)
    key = {"Idempotency-Key": "turn-2"}
    first = anna.again(battle, "And milk?", **key)
    assert anna.again(battle, "And milk?", **key) == first, "while it is being answered"
    write_answers(world.sessions, battle["id"], UNSEEN)
    assert anna.again(battle, "And milk?", **key) == first, "and once it has been"
    assert asked(world) == 2
    assert anna.again(battle, "And sugar?", status=409, **key)["code"] == "idempotency_key_reused"


def test_the_stream_of_a_turn_has_no_text_of_a_later_one(world: ArenaWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that was cut off while another one asked the next turn."""
    world.arena()
    anna = world.person("anna")
    battle = anna.answered("Tea?", SEEN)
    anna.again(battle, "And milk?")
    write_answers(world.sessions, battle["id"], UNSEEN)
    monkeypatch.setattr(event_stream, "LIFE_SECONDS", 5.0)
    url = f"{PROJECT}/battles/{battle['id']}/stream"
    first, last = anna.client.get(url, params={"turn": 1}).text, anna.client.get(url).text
    assert (SEEN[0] in first, "Unseen" in first) == (True, False)
    assert (SEEN[0] in last, "Unseen" in last) == (False, True)
    assert anna.get(f"battles/{battle['id']}/stream?turn=3", status=422)["code"] == "unknown_turn"
