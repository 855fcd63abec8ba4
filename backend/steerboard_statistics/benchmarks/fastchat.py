"""FastChat's MT-Bench figures (Zheng et al., arXiv 2306.05685; llm_judge/show_result.py), and the older pair reviews of
the Vicuna announcement."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeGuard

Winner = Literal["model_1", "model_2", "tie", "error"]
UNPARSED = -1.0


@dataclass(frozen=True, slots=True)
class Rating:
    """One row of a single-answer file. `score` -1, null or NaN: not parsed. `at`: seconds since 1970, if known."""

    question_id: Hashable
    model: str
    turn: int
    score: float | None
    at: float | None = None


@dataclass(frozen=True, slots=True)
class SingleSummary:
    """One model's means over scores from 1 to 10. `average` is over all rows, as FastChat computes it, which is not the
    mean of the turns' means where one lacks rows. `missing`: (question, turn) that other rows lead to expect."""

    model: str
    turns: dict[int, float]
    counts: dict[int, int]
    average: float | None
    n: int
    unparsed: int
    superseded: int
    missing: list[tuple[Hashable, int]]


def newest(rows: Sequence[Rating]) -> tuple[list[Rating], list[Rating]]:
    """(what counts, what is superseded): of rows of the same question, model and turn the newest one counts.

    A row without a time is older than any with one; among equals the later row of the file is the newer.
    """
    best: dict[tuple[Hashable, str, int], int] = {}
    for index, row in enumerate(rows):
        key = (row.question_id, row.model, row.turn)
        if key not in best or _time(row) >= _time(rows[best[key]]):
            best[key] = index
    kept = set(best.values())
    return (
        [row for index, row in enumerate(rows) if index in kept],
        [row for index, row in enumerate(rows) if index not in kept],
    )


def _time(row: Rating) -> float:
    return -math.inf if row.at is None or math.isnan(row.at) else row.at


def single_summary(rows: Sequence[Rating]) -> list[SingleSummary]:
    """Every model's means by turn, best average first. Rows that were not parsed are left out, and counted.

    FastChat itself counts duplicated rows twice; here only the newest counts.
    """
    kept, old = newest(rows)
    expected = {(question, turn) for question in {r.question_id for r in kept} for turn in {r.turn for r in kept}}
    superseded: dict[str, int] = defaultdict(int)
    for row in old:
        superseded[row.model] += 1
    by_model: dict[str, list[Rating]] = defaultdict(list)
    for row in kept:
        by_model[row.model].append(row)
    summaries = [_of_model(model, ratings, expected, superseded[model]) for model, ratings in by_model.items()]
    return sorted(
        summaries, key=lambda summary: (-(summary.average if summary.average is not None else -math.inf), summary.model)
    )


def _of_model(
    model: str, rows: Sequence[Rating], expected: set[tuple[Hashable, int]], superseded: int
) -> SingleSummary:
    scores: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if _parsed(row.score):
            scores[row.turn].append(row.score)
    every = [score for turn in scores.values() for score in turn]
    return SingleSummary(
        model=model,
        turns={turn: math.fsum(values) / len(values) for turn, values in sorted(scores.items())},
        counts={turn: len(values) for turn, values in sorted(scores.items())},
        average=math.fsum(every) / len(every) if every else None,
        n=len(every),
        unparsed=len(rows) - len(every),
        superseded=superseded,
        missing=sorted(expected - {(row.question_id, row.turn) for row in rows}, key=str),
    )


@dataclass(frozen=True, slots=True)
class Games:
    """Both orders of one pair on one question and turn: who won each, by its model, not by its place. `g2_winner`
    None: judged in one order only."""

    model_1: str
    model_2: str
    g1_winner: Winner
    g2_winner: Winner | None

    @property
    def winner(self) -> Winner:
        """Orders that disagree are a tie, and an error in one is an error."""
        if "error" in (self.g1_winner, self.g2_winner):
            return "error"
        return self.g1_winner if self.g2_winner in (None, self.g1_winner) else "tie"

    @property
    def value(self) -> float | None:
        """The share of the win that is model_1's: 1, 1/2 or 0; None for an error."""
        return {"model_1": 1.0, "tie": 0.5, "model_2": 0.0}.get(self.winner)


@dataclass(frozen=True, slots=True)
class PairSummary:
    """`win_rate_adjusted` = (wins + ties / 2) / n. `flips`: of the `both` pairs judged in both orders those whose
    verdict differs between them, a tie against a win included; without such pairs there is no flip rate."""

    model: str
    wins: int
    ties: int
    losses: int
    flips: int
    errors: int
    both: int

    @property
    def n(self) -> int:
        return self.wins + self.ties + self.losses

    @property
    def win_rate_adjusted(self) -> float | None:
        return (self.wins + self.ties / 2) / self.n if self.n else None

    @property
    def flip_rate(self) -> float | None:
        return self.flips / self.both if self.both else None


def pair_summary(rows: Sequence[Games]) -> list[PairSummary]:
    """Every model over all its pairs, best first. Orders that disagree are a tie; a row with an error is left out and
    counted."""
    tally: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        left, right = tally[row.model_1], tally[row.model_2]
        if row.winner == "error":
            left["errors"] += 1
            right["errors"] += 1
            continue
        for side in (left, right):
            side["both"] += row.g2_winner is not None
            side["flips"] += row.g2_winner is not None and row.g1_winner != row.g2_winner
            side["ties"] += row.winner == "tie"
        if row.winner != "tie":
            winner, loser = (left, right) if row.winner == "model_1" else (right, left)
            winner["wins"] += 1
            loser["losses"] += 1
    summaries = [
        PairSummary(model, *(counts[name] for name in ("wins", "ties", "losses", "flips", "errors", "both")))
        for model, counts in tally.items()
    ]
    return sorted(summaries, key=lambda summary: (-(summary.win_rate_adjusted or 0.0), summary.model))


@dataclass(frozen=True, slots=True)
class ReviewSummary:
    """A pair of assistants over the questions: sums of their scores (1 to 10 each), and who had the higher one."""

    total_1: float
    total_2: float
    wins_1: int
    ties: int
    wins_2: int
    n: int
    unparsed: int

    @property
    def share_1(self) -> float | None:
        """total_1 / total_2, the announcement's relative score."""
        return self.total_1 / self.total_2 if self.total_2 else None


def _parsed(score: float | None) -> TypeGuard[float]:
    return score is not None and score != UNPARSED and not math.isnan(score)


def review_summary(scores: Sequence[Sequence[float | None] | None]) -> ReviewSummary:
    """The summary of vicuna_blog's reviews: one pair of scores a question. None was not parsed, nor was a pair with -1,
    None or NaN in it."""
    good = [
        (float(pair[0]), float(pair[1]))
        for pair in scores
        if pair is not None and len(pair) == 2 and _parsed(pair[0]) and _parsed(pair[1])
    ]
    return ReviewSummary(
        total_1=math.fsum(a for a, _ in good),
        total_2=math.fsum(b for _, b in good),
        wins_1=sum(a > b for a, b in good),
        ties=sum(a == b for a, b in good),
        wins_2=sum(a < b for a, b in good),
        n=len(good),
        unparsed=len(scores) - len(good),
    )


def by_category(rows: Sequence[Rating], categories: Mapping[Hashable, str]) -> dict[str, dict[str, float]]:
    """{model: {category: mean over turns}} of what counts; questions without a category are left out."""
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in newest(rows)[0]:
        category = categories.get(row.question_id)
        if category is not None and _parsed(row.score):
            scores[row.model][category].append(row.score)
    return {
        model: {name: math.fsum(values) / len(values) for name, values in sorted(ratings.items())}
        for model, ratings in scores.items()
    }
