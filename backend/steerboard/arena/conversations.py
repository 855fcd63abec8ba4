"""The conversations of a battle: the turns, and the entrants' answers to each."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.arena.errors import AnswerFailed, AnswersMissing, UnknownTurn
from steerboard.arena.tables import Battle, Turn
from steerboard.playground.tables import PlaygroundAnswer


@dataclass(frozen=True)
class Exchange:
    """One turn. `answers`: of A, B and so on, as they are now."""

    prompt: str
    comparison_id: uuid.UUID
    answers: Sequence[PlaygroundAnswer]


@dataclass
class Conversation:
    """`sides`: how many entrants answer."""

    sides: int
    turns: list[Exchange] = field(default_factory=list)

    def first(self, turns: int | None) -> Conversation:
        """The conversation's first `turns` turns; None gives all. Raises `UnknownTurn`."""
        if turns is not None and turns > len(self.turns):
            raise UnknownTurn(f"the battle has no turn {turns}", hint=f"The last one is {len(self.turns)}.")
        return Conversation(self.sides, self.turns[:turns])

    def check_complete(self) -> None:
        """Raises `AnswersMissing`, or `AnswerFailed` where waiting is of no use."""
        states = {answer.state for turn in self.turns for answer in turn.answers}
        if states & {"failed", "cancelled"}:
            raise AnswerFailed("an answer of the battle failed", hint="Start another battle.")
        if states != {"succeeded"}:
            raise AnswersMissing("not all entrants have answered yet", hint="Wait for their answers.")

    def messages(self) -> list[list[dict[str, str]]]:
        """Each side's conversation."""
        messages: list[list[dict[str, str]]] = [[] for _ in range(self.sides)]
        for turn in self.turns:
            for conversation, answer in zip(messages, turn.answers, strict=True):
                conversation += [
                    {"role": "user", "content": turn.prompt},
                    {"role": "assistant", "content": answer.text},
                ]
        return messages


def read_conversations(session: Session, battles: Sequence[Battle]) -> dict[uuid.UUID, Conversation]:
    conversations = {battle.id: Conversation(len(battle.entrants)) for battle in battles}
    turns = session.scalars(
        select(Turn).where(Turn.battle_id.in_(conversations)).order_by(Turn.battle_id, Turn.place)
    ).all()
    answers = session.scalars(
        select(PlaygroundAnswer)
        .where(PlaygroundAnswer.comparison_id.in_([turn.comparison_id for turn in turns]))
        .order_by(PlaygroundAnswer.place)
        .execution_options(populate_existing=True)
    )
    of: dict[uuid.UUID, list[PlaygroundAnswer]] = {}
    for answer in answers:
        of.setdefault(answer.comparison_id, []).append(answer)
    for turn in turns:
        conversations[turn.battle_id].turns.append(Exchange(turn.prompt, turn.comparison_id, of[turn.comparison_id]))
    return conversations
