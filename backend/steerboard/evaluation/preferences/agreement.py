"""How far those who compared two answers agree: votes of people and judges, counted for each pair of answers."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from steerboard.evaluation.preferences.pairs import PreferenceVote

Answers = tuple[int, int, frozenset[uuid.UUID]]


@dataclass
class Ballot:
    """The votes on two answers. A ranking of an annotator is one vote, and so is the verdict of a judge, both orders
    together; a tie counts half for each side."""

    people: int = 0
    judges: int = 0
    wins: dict[uuid.UUID, float] = field(default_factory=lambda: defaultdict(float))
    voters: dict[uuid.UUID, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    @property
    def votes(self) -> int:
        return self.people + self.judges

    def add(self, pair: PreferenceVote) -> None:
        if pair.about["source"] == "campaign":
            self.people += 1
        else:
            self.judges += 1
        self.wins[pair.chosen] += 0.5 if pair.tie else 1
        self.wins[pair.rejected] += 0.5 if pair.tie else 0
        if not pair.tie:
            self.voters[pair.chosen].append(pair.about)

    def agreement(self, chosen: uuid.UUID) -> float:
        """The share of the votes that prefer this answer."""
        return self.wins[chosen] / self.votes

    def about(self, chosen: uuid.UUID) -> dict[str, Any]:
        """What a row's further columns hold."""
        return {
            "votes": self.votes,
            "agreement": round(self.agreement(chosen), 6),
            "people": self.people,
            "judges": self.judges,
        }


def by_majority(ballots: dict[Answers, Ballot]) -> Iterator[PreferenceVote]:
    """One pair for each two answers of which one has more votes, in the order in which they were first compared."""
    for (position, turn, answers), ballot in ballots.items():
        a, b = sorted(answers)
        if ballot.wins[a] == ballot.wins[b]:
            continue
        chosen, rejected = (a, b) if ballot.wins[a] > ballot.wins[b] else (b, a)
        votes = ballot.voters[chosen]
        about: dict[str, Any] = {key: _joined(vote[key] for vote in votes) for key in ("source", "source_name", "by")}
        about["at"] = max((vote["at"] for vote in votes if vote["at"]), default=None)
        about["criterion"] = votes[0].get("criterion")
        yield PreferenceVote(position, turn, chosen, rejected, about)


def _joined(values: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(values))
