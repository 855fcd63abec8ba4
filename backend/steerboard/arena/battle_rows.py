"""The votes of an arena as rows of a battles file, which `steerboard figures` reads, and the leaderboard of them.

A row is a pair of entrants that a vote decides between; rows of one vote have the same `battle`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.arena.outcomes import LETTERS, decided
from steerboard.arena.schemas import ArenaLeaderboard
from steerboard.arena.tables import Arena, Battle, Vote
from steerboard_figures.benchmark_files import battles

_WINNERS = {1.0: "model_a", 0.0: "model_b"}
# As lmarena names them, also of more than two.
_TIES = {"tie": "tie", "all_bad": "tie (bothbad)"}


def rows(session: Session, arena: Arena, category: str | None = None) -> Iterator[dict[str, Any]]:
    """The votes that count, in their order."""
    names = [entrant["name"] for entrant in arena.entrants]
    query = (
        select(Battle.entrants, Vote)
        .join(Battle, Battle.id == Vote.battle_id)
        .where(Vote.arena_id == arena.id, Vote.counts)
        .order_by(Vote.created_at, Vote.battle_id)
        .execution_options(yield_per=500)
    )
    if category is not None:
        query = query.where(Vote.category == category)
    for entrants, vote in session.execute(query):
        for side, other, share in decided(vote.verdict, len(entrants)):
            yield {
                "id": f"{vote.battle_id}-{LETTERS[side]}{LETTERS[other]}",
                "battle": str(vote.battle_id),
                "model_a": names[entrants[side]],
                "model_b": names[entrants[other]],
                "winner": _TIES.get(vote.verdict) or _WINNERS[share],
                "tstamp": vote.created_at.timestamp(),
                "turn": len(vote.conversations[side]) // 2,
                "category": vote.category,
                "conversation_a": vote.conversations[side],
                "conversation_b": vote.conversations[other],
            }


def write(session: Session, arena: Arena, file: BinaryIO) -> None:
    for row in rows(session, arena):
        file.write(orjson.dumps(row) + b"\n")


def leaderboard(session: Session, arena: Arena, category: str | None) -> ArenaLeaderboard:
    """The ratings from all votes that count, or of one category's; equal to what `steerboard figures` gives for the
    exported file."""
    by_category = _by_category(session, arena)
    board = battles.of_rows(rows(session, arena, category))
    if not board["n"]:
        why = "no one has voted" + ("" if category is None else f" in the category {category!r}")
        return ArenaLeaderboard(category=category, n=0, models=[], why=why, matrix={}, by_category=by_category)
    return ArenaLeaderboard.model_validate({**board, "category": category, "by_category": by_category})


def _by_category(session: Session, arena: Arena) -> dict[str, int]:
    counted = select(Vote.category, func.count()).where(
        Vote.arena_id == arena.id, Vote.counts, Vote.category.is_not(None)
    )
    counts = {row[0]: row[1] for row in session.execute(counted.group_by(Vote.category))}
    return {category: counts.get(category, 0) for category in arena.categories}
