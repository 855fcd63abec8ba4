"""What is judged, apart from the database: prompts, entrants, and their answers."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

# FastChat's NEED_REF_CATS: categories in which a judge can be wrong itself.
REFERENCE_CATEGORIES = frozenset({"math", "reasoning", "coding", "arena-hard-200"})


@dataclass(frozen=True)
class JudgedPrompt:
    """One prompt of an evaluation, as in `EvaluationPrompt`."""

    position: int
    category: str | None
    messages: Sequence[Mapping[str, str]]
    follow_ups: Sequence[str]
    reference: Sequence[str] | None

    @property
    def turns(self) -> int:
        return 1 + len(self.follow_ups)

    def questions(self, turn: int) -> list[str]:
        """The user's messages in turns 1 to `turn`; a conversation before the first one is written out."""
        return [_opening(self.messages), *self.follow_ups[: turn - 1]]

    def references(self, turn: int) -> list[str] | None:
        """Reference answers of turns 1 to `turn`, None unless all are there and this category needs them."""
        if self.reference is None or len(self.reference) < turn:
            return None
        needed = self.category is None or self.category.lower() in REFERENCE_CATEGORIES
        given = list(self.reference[:turn])
        return given if needed and all(text.strip() for text in given) else None


@dataclass(frozen=True)
class JudgedEntrant:
    id: uuid.UUID
    name: str


Answered = tuple[JudgedEntrant, list[str]]
"""An entrant with its answers of turns 1, 2, ..."""


@dataclass(frozen=True)
class JudgeInputs:
    """`answers`: by (entrant, position), the turns of one response. `entrants`: those that are judged."""

    prompts: Sequence[JudgedPrompt]
    entrants: Sequence[JudgedEntrant]
    answers: Mapping[tuple[uuid.UUID, int], Sequence[str]]

    def answers_of(self, prompt: JudgedPrompt, turn: int) -> list[Answered]:
        """The entrants that have answered turns 1 to `turn`."""
        answered_by = [(entrant, self.answered(entrant, prompt, turn)) for entrant in self.entrants]
        return [(entrant, answers) for entrant, answers in answered_by if answers is not None]

    def pairs(self, prompt: JudgedPrompt, turn: int, baseline: str | None) -> Iterator[tuple[Answered, Answered]]:
        """Every pair, or every other entrant against the baseline."""
        answering = self.answers_of(prompt, turn)
        if baseline is None:
            yield from itertools.combinations(answering, 2)
            return
        against = next((candidate for candidate in answering if candidate[0].name == baseline), None)
        if against is not None:
            yield from ((candidate, against) for candidate in answering if candidate is not against)

    def answered(self, entrant: JudgedEntrant, prompt: JudgedPrompt, turn: int) -> list[str] | None:
        """The entrant's answers of turns 1 to `turn`, None when one is missing."""
        turns = self.answers.get((entrant.id, prompt.position), ())
        return list(turns[:turn]) if len(turns) >= turn else None


def dialogue(questions: Sequence[str], answers: Sequence[str]) -> tuple[str, str]:
    """Several turns as (one question, the last answer), for judges that know only one of each."""
    if len(questions) == 1:
        return questions[0], answers[0]
    return written_out(questions, answers[:-1]), answers[-1]


def written_out(questions: Sequence[str], answers: Sequence[str]) -> str:
    """A conversation in words; the last question may have no answer yet."""
    lines = []
    for number, question in enumerate(questions):
        lines.append(f"User: {question}")
        if number < len(answers):
            lines.append(f"Assistant: {answers[number]}")
    return "\n\n".join(lines)


def _opening(messages: Sequence[Mapping[str, str]]) -> str:
    if len(messages) == 1:
        return messages[0]["content"]
    return "\n\n".join(f"{message['role'].capitalize()}: {message['content']}" for message in messages)
