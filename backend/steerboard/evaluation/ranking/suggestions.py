"""What a campaign's judge thinks of the answers of an item: its suggestion to annotators."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from steerboard.evaluation.judge_tables import Judge, Verdict
from steerboard.evaluation.judges.both_orders import PAIR_STYLES, OrderedVerdict, together
from steerboard.evaluation.judges.calibrations import in_order

# Differences that come from the order of a sum alone order nothing.
_DIGITS = 6


@dataclass(frozen=True)
class JudgeView:
    """A judge's view of an item's answers. `values` by entrant, higher is better: its scores where it is `scored`, else
    the mean share of wins."""

    values: Mapping[str, float]
    scored: bool

    @property
    def ranks(self) -> dict[str, int]:
        """1 + how many are better."""
        return {
            entrant: 1 + sum(other > value for other in self.values.values()) for entrant, value in self.values.items()
        }


def judge_views(
    session: Session, judge_id: uuid.UUID | None, entrants: Sequence[str], positions: Sequence[int]
) -> dict[int, JudgeView]:
    """The judge's views by position, of the items whose answers the judge has all scored or compared, with the verdicts
    that count now.

    A judge of pairs has a view where it has compared every two of the answers, or all others with the same one.
    """
    judge = session.get(Judge, judge_id) if judge_id is not None else None
    if judge is None or not positions:
        return {}
    ids = [uuid.UUID(entrant) for entrant in entrants]
    verdicts: dict[int, list[Verdict]] = defaultdict(list)
    for verdict in session.scalars(
        select(Verdict)
        .where(
            Verdict.judge_id == judge.id,
            Verdict.position.in_(positions),
            ~Verdict.superseded,
            Verdict.a.in_(ids),
            or_(Verdict.b.is_(None), Verdict.b.in_(ids)),
        )
        .order_by(Verdict.id)
    ):
        verdicts[verdict.position].append(verdict)
    paired = judge.style in PAIR_STYLES
    views = {}
    for position, given in verdicts.items():
        values = _shares(given, judge.style, ids) if paired else _scores(given)
        if values is not None and set(values) == set(ids):
            rounded = {str(entrant): round(value, _DIGITS) for entrant, value in values.items()}
            views[position] = JudgeView(rounded, scored=not paired)
    return views


def _scores(verdicts: Sequence[Verdict]) -> dict[uuid.UUID, float]:
    """The mean over turns and orders."""
    scores: dict[uuid.UUID, list[float]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.status == "ok" and verdict.value is not None:
            scores[verdict.a].append(verdict.value)
    return {entrant: fmean(values) for entrant, values in scores.items()}


def _shares(verdicts: Sequence[Verdict], style: str, entrants: Sequence[uuid.UUID]) -> dict[uuid.UUID, float] | None:
    """The mean share of wins against the others; against the one that all were compared with where not every two were,
    which itself has 1/2."""
    won = _won(verdicts, style)
    others = {entrant: [other for other in entrants if other != entrant] for entrant in entrants}
    if len(entrants) < 2:
        return None
    if all((a, b) in won for a, b in combinations(entrants, 2)):
        return {a: fmean(won[a, b] for b in others[a]) for a in entrants}
    for base in entrants:
        if all((entrant, base) in won for entrant in others[base]):
            return {base: 0.5, **{entrant: won[entrant, base] for entrant in others[base]}}
    return None


def _won(verdicts: Sequence[Verdict], style: str) -> dict[tuple[uuid.UUID, uuid.UUID], float]:
    """(one, other) -> the share of one's win, the mean over turns; both ways round."""
    asked: dict[tuple[uuid.UUID, uuid.UUID, int], list[OrderedVerdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.b is not None:
            first, second = sorted((verdict.a, verdict.b))
            asked[first, second, verdict.turn].append(in_order(verdict, of=first))
    turns: dict[tuple[uuid.UUID, uuid.UUID], list[float]] = defaultdict(list)
    for (first, second, _), given in asked.items():
        merged = together(given, style)
        if merged is not None:
            turns[first, second].append(merged.value)
    won = {}
    for (first, second), values in turns.items():
        won[first, second] = fmean(values)
        won[second, first] = 1 - won[first, second]
    return won
