"""How far the annotators of an item differ, kept with the item, so that reviewers find the items that need them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from steerboard.evaluation.ranking.locks import LockedTask
from steerboard.evaluation.ranking.questions import Question, choices_apart
from steerboard.evaluation.ranking.tables import RankingItem, RankingTask

Values = dict[str, float]


@dataclass(frozen=True)
class Opinion:
    """One annotator's. `ranks` and `scores` by criterion, then by entrant; the overall ranking under no name."""

    ranks: dict[str, Values]
    scores: dict[str, Values]
    correction: str | None = None


def note(session: Session, held: LockedTask) -> None:
    """Called after a submission or its undoing, with the item's row locked."""
    session.flush()
    tasks = session.execute(
        select(
            RankingTask.shown,
            RankingTask.ranks,
            RankingTask.criteria_ranks,
            RankingTask.scores,
            RankingTask.correction,
            RankingTask.replies,
        ).where(RankingTask.item_id == held.item_id, RankingTask.state == "submitted")
    ).all()
    value = disagreement([opinion_of(task) for task in tasks], held.points)
    choices = _apart([task.replies or {} for task in tasks], held.questions)
    if value is not None and choices is not None:
        # An item is a reviewer's where its annotators differ in either.
        value = max(value, choices)
    session.execute(
        update(RankingItem)
        .where(RankingItem.id == held.item_id)
        .values(disagreement=value)
        .execution_options(synchronize_session=False)
    )


def disagreement(opinions: Sequence[Opinion], points: dict[str, int | None]) -> float | None:
    """The mean over every two annotators, from 0 to 1; None below two.

    Of ranks: the share of the pairs of answers that they order differently, a tie by one of them counting 1/2. Of
    scores: their distance as a share of the scale. Of corrections: whether the texts differ.
    """
    distances = [between(first, other, points) for first, other in combinations(opinions, 2)]
    return fmean(distances) if distances else None


def _apart(replies: Sequence[dict[str, Any]], questions: Sequence[Question]) -> float | None:
    """The mean distance of the choices of every two annotators; None below two."""
    distances = [choices_apart(one, other, questions) for one, other in combinations(replies, 2)]
    return fmean(distances) if distances else None


def between(first: Opinion, other: Opinion, points: dict[str, int | None]) -> float:
    """How far two opinions are apart, from 0 to 1."""
    if first.correction is not None or other.correction is not None:
        return float((first.correction or "").strip() != (other.correction or "").strip())
    if first.scores and other.scores:
        return fmean(
            abs(score - other.scores[name][entrant]) / ((points.get(name) or 5) - 1)
            for name, given in first.scores.items()
            for entrant, score in given.items()
        )
    apart = [
        abs(_sign(ranks[a] - ranks[b]) - _sign(other.ranks[name][a] - other.ranks[name][b])) / 2
        for name, ranks in first.ranks.items()
        if name in other.ranks
        for a, b in combinations(sorted(ranks), 2)
    ]
    return fmean(apart) if apart else 0.0


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def opinion_of(task: Any) -> Opinion:
    """The opinion in the columns of a task or a decision."""
    given = {**(task.criteria_ranks or {}), **({"": task.ranks} if task.ranks else {})}
    return Opinion(_by_entrant(task.shown, given), _by_entrant(task.shown, task.scores or {}), task.correction)


def _by_entrant(shown: Sequence[str], given: dict[str, list[int]]) -> dict[str, Values]:
    return {name: dict(zip(shown, map(float, values), strict=True)) for name, values in given.items()}
