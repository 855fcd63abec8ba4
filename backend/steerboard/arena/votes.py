"""Votes: one a battle, stored with the conversations that it is about."""

from __future__ import annotations

import hashlib

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.arena import rates
from steerboard.arena.conversations import Conversation, read_conversations
from steerboard.arena.errors import AlreadyVoted
from steerboard.arena.outcomes import LETTERS, best_of
from steerboard.arena.schemas import VoteIn
from steerboard.arena.tables import Battle, Vote
from steerboard_contracts.errors import BadInput


def give(session: Session, battle: Battle, given: VoteIn) -> bool:
    """Store the vote on a locked battle; False where it was stored before.

    Raises `AlreadyVoted` where another verdict is there, `BadInput` (`unknown_side`), `UnknownTurn`, `AnswersMissing`,
    `AnswerFailed`, `TooFast`.
    """
    sides = len(battle.entrants)
    if (best_of(given.verdict) or 0) >= sides:
        raise BadInput(
            f"the battle has no answer {given.verdict.upper()}",
            code="unknown_side",
            hint=f"Its answers: {', '.join(LETTERS[:sides]).upper()}.",
        )
    known = session.get(Vote, battle.id)
    if known is not None:
        if known.verdict == given.verdict:
            return False
        raise AlreadyVoted(
            "the battle already has a different verdict, which cannot change", hint="Start another battle."
        )
    rates.take_vote(session, battle.user_id)
    # A later turn may have been asked without its sender hearing of it.
    conversation = read_conversations(session, [battle])[battle.id].first(given.turns)
    conversation.check_complete()
    entrant_set = " ".join(map(str, sorted(battle.entrants)))
    hash_ = prompt_hash(conversation)
    # Votes of one person are stored one after the other.
    before = select(Vote.battle_id).where(
        Vote.arena_id == battle.arena_id,
        Vote.user_id == battle.user_id,
        Vote.entrant_set == entrant_set,
        Vote.prompt_hash == hash_,
        Vote.counts,
    )
    vote = Vote(
        battle_id=battle.id,
        arena_id=battle.arena_id,
        user_id=battle.user_id,
        submission=given.submission,
        verdict=given.verdict,
        category=battle.category,
        entrant_set=entrant_set,
        prompt_hash=hash_,
        counts=session.scalar(before) is None,
        conversations=conversation.messages(),
    )
    session.add(vote)
    session.flush()
    return True


def prompt_hash(conversation: Conversation) -> str:
    """SHA-256 of what the person asked, whatever its spaces and its case."""
    prompts = "\x00".join(" ".join(turn.prompt.casefold().split()) for turn in conversation.turns)
    return hashlib.sha256(prompts.encode()).hexdigest()
