"""Which prompt and which entrant of an evaluation a row of a file is about."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.evaluation.tables import Entrant, Evaluation, EvaluationPrompt
from steerboard.platform.names import valid_name
from steerboard_files.texts import storable


class Prompts:
    """Places of prompts. A row's `question_id` decides; without one its text, and only without both its place."""

    def __init__(self, rows: Sequence[tuple[int, str, list[dict[str, Any]], list[str]]]) -> None:
        """rows: (position, question_id, messages, follow_ups)."""
        self.turns = {position: 1 + len(follow_ups) for position, _, _, follow_ups in rows}
        self._ids: dict[str, int] = {}
        self._texts: dict[str, list[int]] = defaultdict(list)
        self._text_at: dict[int, str] = {}
        self._positions = [position for position, _, _, _ in rows]
        for position, question_id, messages, _ in rows:
            self._ids.setdefault(question_id, position)
            question = _question(messages)
            self._texts[question].append(position)
            self._text_at[position] = question
        self._met: Counter[Hashable] = Counter()

    @classmethod
    def of(cls, session: Session, evaluation: Evaluation) -> Prompts:
        columns = (
            EvaluationPrompt.position,
            EvaluationPrompt.question_id,
            EvaluationPrompt.messages,
            EvaluationPrompt.follow_ups,
        )
        query = select(*columns).where(EvaluationPrompt.evaluation_id == evaluation.id)
        return cls([tuple(row) for row in session.execute(query.order_by(EvaluationPrompt.position))])  # type: ignore[misc]

    def again(self) -> None:
        """Called before the same rows are gone through a second time."""
        self._met.clear()

    def find(self, question_id: str | None, text: str | None, place: int | None, by: Hashable) -> int | None:
        """The position that a row is about, or None.

        `place`: how many rows of `by` (its model, or pair of models) the file had before; None where one before it
        could not be read, whose place no one knows. A text that several prompts share means each of them in turn.
        """
        if question_id is not None and question_id in self._ids:
            return self._ids[question_id]
        if text is not None:
            question = text.strip()
            if place is not None and place < len(self._positions) and self._text_at[self._positions[place]] == question:
                return self._positions[place]
            same = self._texts.get(question, [])
            if not same:
                return None
            met = self._met[by, question]
            self._met[by, question] += 1
            return same[min(met, len(same) - 1)]
        if question_id is None and place is not None and place < len(self._positions):
            return self._positions[place]
        return None


class Entrants:
    """Entrants by name, by id, and by the name that their model has in the files that their answers came from."""

    def __init__(self, entrants: Sequence[Entrant]) -> None:
        self._found: dict[str, Entrant] = {}
        self._answers: dict[str, Entrant] = {}
        for entrant in entrants:
            self.add(entrant)

    def add(self, entrant: Entrant) -> None:
        """Another one. The first of a name keeps it."""
        imported = entrant.imported or {}
        for name in (entrant.name, str(entrant.id), imported.get("model")):
            if isinstance(name, str):
                self._found.setdefault(name, entrant)
        for answer_id in imported.get("answer_ids", ()):
            self._answers.setdefault(answer_id, entrant)

    def find(self, model: str) -> Entrant | None:
        return self._found.get(model) or self._found.get(valid_name(model))

    def of_answer(self, answer_id: str | None) -> Entrant | None:
        return self._answers.get(answer_id) if answer_id is not None else None


def _question(messages: list[dict[str, Any]]) -> str:
    """The question. It goes through `storable`, as rows of files do."""
    return storable(str(messages[-1]["content"])).strip() if messages else ""
