"""Arenas and battles as they are shown. Before the vote nothing here names an entrant or hints at which it is."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import cast

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.arena.conversations import read_conversations
from steerboard.arena.outcomes import LETTERS, Verdict
from steerboard.arena.schemas import ArenaOut, ArenaState, BattleOut, Revealed, Side, SideChange, SideState, TurnOut
from steerboard.arena.tables import Arena, Battle, Vote
from steerboard.playground.queue_position import NO_WORKER, Waiting
from steerboard.playground.schemas import AnswerChange
from steerboard.playground.tables import Comparison, PlaygroundAnswer


def arenas_out(session: Session, arenas: Sequence[Arena]) -> list[ArenaOut]:
    votes = _votes(session, [arena.id for arena in arenas])
    return [
        ArenaOut(
            id=arena.id,
            name=arena.name,
            entrants=[entrant["name"] for entrant in arena.entrants],
            sides=arena.sides,
            categories=arena.categories,
            state=cast(ArenaState, arena.state),
            votes=votes.get((arena.id, True), 0),
            repeats=votes.get((arena.id, False), 0),
            created_by=arena.created_by,
            created_at=arena.created_at,
        )
        for arena in arenas
    ]


def _votes(session: Session, arenas: Sequence[uuid.UUID]) -> dict[tuple[uuid.UUID, bool], int]:
    counted = select(Vote.arena_id, Vote.counts, func.count()).where(Vote.arena_id.in_(arenas))
    rows = session.execute(counted.group_by(Vote.arena_id, Vote.counts))
    return {(arena, counts): votes for arena, counts, votes in rows}


def battle_out(session: Session, battle: Battle, lease_seconds: float) -> BattleOut:
    conversation = read_conversations(session, [battle])[battle.id]
    vote = session.get(Vote, battle.id)
    return BattleOut(
        id=battle.id,
        arena=battle.arena_id,
        category=battle.category,
        turns=[TurnOut(prompt=turn.prompt, sides=list(map(_side, turn.answers))) for turn in conversation.turns],
        waits_for=_waits_for(session, conversation.turns[-1].comparison_id, lease_seconds),
        vote=_revealed(session, battle, vote) if vote is not None else None,
        created_at=battle.created_at,
    )


def _revealed(session: Session, battle: Battle, vote: Vote) -> Revealed:
    entrants = session.get_one(Arena, battle.arena_id).entrants
    return Revealed(
        verdict=cast(Verdict, vote.verdict),
        turns=len(vote.conversations[0]) // 2,
        counts=vote.counts,
        names=[entrants[place]["name"] for place in battle.entrants],
    )


def _waits_for(session: Session, comparison_id: uuid.UUID, lease_seconds: float) -> str | None:
    """Only what concerns all alike: what a worker notes of a column names its model."""
    comparison = session.get_one(Comparison, comparison_id)
    waits = Waiting(session, lease_seconds, [comparison]).of(comparison, None)
    return waits if waits == NO_WORKER else None


def _side(answer: PlaygroundAnswer) -> Side:
    return Side(state=_state(answer.state), text=answer.text, cut=_cut(answer.state, answer.finished))


def side_change(change: AnswerChange) -> SideChange:
    return SideChange(
        side=LETTERS[change.place],
        state=_state(change.state),
        cut=_cut(change.state, change.finished),
        at=change.at,
        text=change.text,
    )


def _state(state: str) -> SideState:
    return cast(SideState, "failed" if state == "cancelled" else state)


def _cut(state: str, finished: bool) -> bool:
    return state == "succeeded" and not finished
