"""Votes as a preference dataset: the answer that was preferred to each other one of its battle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project, User
from steerboard.arena.outcomes import best_of
from steerboard.arena.schemas import PairsIn
from steerboard.arena.tables import Arena, Battle, Vote
from steerboard.datasets.pairs import register_pairs
from steerboard.datasets.tables import Dataset
from steerboard.platform.names import check_name


def create(session: Session, project: Project, arena: Arena, given: PairsIn, actor: str) -> Dataset:
    """Make, for each vote for a side, a row with each other side, in the order of the votes, with who decided it, when,
    and between whom. Ties, battles that are all bad and repeats are left out, and counted by vote; answers that are
    empty or the same, by pair.

    Raises `BadInput` (`invalid_name`), `EmptySelection` where nothing is preferred.
    """
    base = check_name(given.name or f"{arena.name}-preferences")
    # One at a time, or two calls would choose the same number.
    session.execute(select(Arena.id).where(Arena.id == arena.id).with_for_update(key_share=True))
    left_out: Counter[str] = Counter()
    origin = {
        "type": "arena",
        "arena": {"id": str(arena.id), "name": arena.name},
        "entrants": [entrant["name"] for entrant in arena.entrants],
        "actor": actor,
    }
    return register_pairs(
        session,
        project,
        base,
        _rows(session, arena, left_out),
        origin=lambda: origin,
        left_out=left_out,
        split=given.split,
        hint="Wait for votes that are not all ties.",
    )


def _rows(session: Session, arena: Arena, left_out: Counter[str]) -> Iterator[dict[str, Any]]:
    names = [entrant["name"] for entrant in arena.entrants]
    query = (
        select(Battle, Vote, User.name)
        .join(Battle, Battle.id == Vote.battle_id)
        .join(User, User.id == Vote.user_id)
        .where(Vote.arena_id == arena.id)
        .order_by(Vote.created_at, Vote.battle_id)
        .execution_options(yield_per=500)
    )
    for battle, vote, voter in session.execute(query):
        best = best_of(vote.verdict)
        if not vote.counts or best is None:
            left_out[vote.verdict if vote.counts else "repeat"] += 1
            continue
        for other in range(len(battle.entrants)):
            if other == best:
                continue
            why = _unusable(vote.conversations[best], vote.conversations[other])
            if why is None:
                yield _row(battle, vote, voter, names, best, other)
            else:
                left_out[why] += 1


def _unusable(chosen: list[dict[str, str]], rejected: list[dict[str, str]]) -> str | None:
    if not all(message["content"].strip() for message in (*chosen, *rejected)):
        return "empty"
    return "identical" if chosen[-1] == rejected[-1] else None


def _row(battle: Battle, vote: Vote, voter: str, names: list[str], best: int, other: int) -> dict[str, Any]:
    """A pair has one prompt, the conversation of the chosen side; `same_history`: whether the other side had the
    same."""
    chosen, rejected = vote.conversations[best], vote.conversations[other]
    return {
        "prompt": chosen[:-1],
        "chosen": chosen[-1]["content"],
        "rejected": rejected[-1]["content"],
        "source": "arena",
        "battle": str(battle.id),
        "turn": len(chosen) // 2,
        "same_history": chosen[:-1] == rejected[:-1],
        "chosen_entrant": names[battle.entrants[best]],
        "rejected_entrant": names[battle.entrants[other]],
        "by": voter,
        "at": vote.created_at.isoformat(),
        **({"category": vote.category} if vote.category is not None else {}),
    }
