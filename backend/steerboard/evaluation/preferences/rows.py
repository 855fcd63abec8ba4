"""Pairs of answers of an evaluation as rows of a preference dataset."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.preferences.agreement import Answers, Ballot
from steerboard.evaluation.preferences.pairs import PreferenceVote
from steerboard.evaluation.tables import Entrant, Evaluation, EvaluationPrompt, Response


class PairRows:
    """Turns pairs into rows of a preference dataset.

    Of several turns the pair is about the last one (or the one that was judged), and the conversation before it is the
    prompt: that of the chosen side, since a pair has one prompt. `same_history`: whether the other side had the same.
    """

    def __init__(self, session: Session, evaluation: Evaluation, min_agreement: float | None) -> None:
        self.ballots: dict[Answers, Ballot] = {}
        self._min_agreement = min_agreement
        self._agreements = 0.0
        entrants = entrants_of(session, evaluation)
        self.order = {entrant.id: place for place, entrant in enumerate(entrants)}
        self.left_out: Counter[str] = Counter()
        self.written = 0
        self._names = {entrant.id: entrant.name for entrant in entrants}
        self._prompts = {
            prompt.position: prompt
            for prompt in session.scalars(
                select(EvaluationPrompt).where(EvaluationPrompt.evaluation_id == evaluation.id)
            )
        }
        first = (
            select(Response.entrant_id, Response.position, Response.turns)
            .join(Entrant, Entrant.id == Response.entrant_id)
            .where(Entrant.evaluation_id == evaluation.id, Response.sample == 0)
        )
        self._turns: dict[tuple[uuid.UUID, int], list[str]] = {
            (entrant, position): turns for entrant, position, turns in session.execute(first)
        }

    @property
    def mean_agreement(self) -> float | None:
        """The mean agreement over the rows so far."""
        return round(self._agreements / self.written, 6) if self.written else None

    @property
    def contested(self) -> int:
        return sum(max(ballot.wins.values()) < ballot.votes for ballot in self.ballots.values())

    def count_votes(self, votes: Iterable[PreferenceVote]) -> None:
        """Count all votes, before the rows are asked for."""
        for vote in votes:
            turn = self._turn(vote)
            if turn is not None and vote.unfit is None:
                answers = vote.position, turn, frozenset((vote.chosen, vote.rejected))
                self.ballots.setdefault(answers, Ballot()).add(vote)

    def of(self, pairs: Iterator[PreferenceVote]) -> Iterator[dict[str, Any]]:
        for pair in pairs:
            row = self._row(pair)
            if isinstance(row, str):
                self.left_out[row] += 1
                continue
            self.written += 1
            self._agreements += row["agreement"]
            yield row

    def _turn(self, pair: PreferenceVote) -> int | None:
        """Which turn a pair is about; None where one of the two has no answer to it."""
        prompt = self._prompts.get(pair.position)
        chosen = self._turns.get((pair.chosen, pair.position))
        rejected = self._turns.get((pair.rejected, pair.position))
        if prompt is None or chosen is None or rejected is None:
            return None
        most = min(len(chosen), len(rejected), 1 + len(prompt.follow_ups))
        turn = pair.turn or most
        return turn if 1 <= turn <= most else None

    def _row(self, pair: PreferenceVote) -> dict[str, Any] | str:
        """The row, or why there is none."""
        if pair.unfit is not None:
            return pair.unfit
        turn = self._turn(pair)
        if turn is None:
            return "no_answer"
        prompt = self._prompts[pair.position]
        chosen, rejected = self._turns[pair.chosen, pair.position], self._turns[pair.rejected, pair.position]
        history = [*prompt.messages]
        for reply, follow_up in zip(chosen[: turn - 1], prompt.follow_ups, strict=False):
            history += [{"role": "assistant", "content": reply}, {"role": "user", "content": follow_up}]
        texts = chosen[turn - 1], rejected[turn - 1]
        if not all(text.strip() for text in (*texts, *(message["content"] for message in history))):
            return "empty"
        if texts[0] == texts[1]:
            return "identical"
        ballot = self.ballots[pair.position, turn, frozenset((pair.chosen, pair.rejected))]
        if self._min_agreement is not None and ballot.agreement(pair.chosen) < self._min_agreement:
            return "disagreement"
        return {
            "prompt": [{"role": message["role"], "content": message["content"]} for message in history],
            "chosen": texts[0],
            "rejected": texts[1],
            "position": pair.position,
            "question_id": prompt.question_id,
            "turn": turn,
            "same_history": chosen[: turn - 1] == rejected[: turn - 1],
            "chosen_entrant": self._names[pair.chosen],
            "rejected_entrant": self._names[pair.rejected],
            **{key: value for key, value in pair.about.items() if value is not None},
            **ballot.about(pair.chosen),
        }
