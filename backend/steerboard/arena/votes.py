"""Votes: one a battle, stored with the conversations that it is about."""

from __future__ import annotations

import hashlib

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.arena import rates
from steerboard.arena.conversations import Conversation, read_conversations
from steerboard.arena.errors import AlreadyVoted, AnswersMissing
from steerboard.arena.schemas import VoteIn
from steerboard.arena.tables import Battle, Vote


def give(session: Session, battle: Battle, given: VoteIn) -> bool:
    """Store the vote on a locked battle; False where it was stored before.

    Raises `AlreadyVoted` where another verdict is there, `AnswersMissing`, `TooFast`.
    """
    known = session.get(Vote, battle.id)
    if known is not None:
        if known.verdict == given.verdict:
            return False
        raise AlreadyVoted("the battle has another verdict, which stays", hint="Begin another battle.")
    rates.take_vote(session, battle.user_id)
    conversation = read_conversations(session, [battle])[battle.id]
    if not conversation.complete:
        raise AnswersMissing(
            "there are not two answers to vote on", hint="Wait for both; if one failed, begin another battle."
        )
    pair = f"{min(battle.a, battle.b)} {max(battle.a, battle.b)}"
    asked = prompt_hash(conversation)
    # Votes of one person are stored one after the other.
    before = select(Vote.battle_id).where(
        Vote.arena_id == battle.arena_id,
        Vote.user_id == battle.user_id,
        Vote.pair == pair,
        Vote.prompt_hash == asked,
        Vote.counts,
    )
    vote = Vote(
        battle_id=battle.id,
        arena_id=battle.arena_id,
        user_id=battle.user_id,
        submission=given.submission,
        verdict=given.verdict,
        category=battle.category,
        pair=pair,
        prompt_hash=asked,
        counts=session.scalar(before) is None,
        conversations=conversation.sides(),
    )
    session.add(vote)
    session.flush()
    return True


def prompt_hash(conversation: Conversation) -> str:
    """SHA-256 of what the person asked, whatever its spaces and its case."""
    asked = "\x00".join(" ".join(turn.prompt.casefold().split()) for turn in conversation.turns)
    return hashlib.sha256(asked.encode()).hexdigest()
