"""Which answer was preferred to which: pairs from people's rankings and from judges' verdicts."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from statistics import fmean
from typing import Any, Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.evaluation.judge_tables import Judge, Verdict
from steerboard.evaluation.judges.both_orders import PAIR_STYLES, OrderedVerdict, together
from steerboard.evaluation.judges.calibrations import in_order
from steerboard.evaluation.ranking.counted import counted
from steerboard.evaluation.ranking.tables import Campaign

Choice = Literal["all", "best_worst", "votes"]
Unfit = Literal["judge_not_valid", "entrant_not_valid", "one_order"]
Two = tuple[uuid.UUID, uuid.UUID]


@dataclass(frozen=True)
class PreferenceVote:
    """One vote. `turn`: the one that was judged, from 1; None: the whole conversation. `about`: who, when, what. `tie`:
    neither answer was preferred. `unfit`: why it is no vote, and does not become a row."""

    position: int
    turn: int | None
    chosen: uuid.UUID
    rejected: uuid.UUID
    about: dict[str, Any]
    tie: bool = False
    unfit: Unfit | None = None


def ordered(scores: Mapping[uuid.UUID, float], pairs: Choice) -> Iterator[tuple[uuid.UUID, uuid.UUID, bool]]:
    """(better, worse, whether they tie) by score, higher is better. `best_worst`: only the best against the worst, each
    of them where several tie; `votes`: ties too."""
    if pairs == "best_worst":
        best, worst = max(scores.values(), default=0), min(scores.values(), default=0)
        scores = {entrant: score for entrant, score in scores.items() if score in (best, worst)}
    for a, b in combinations(scores, 2):
        if scores[a] != scores[b]:
            yield (a, b, False) if scores[a] > scores[b] else (b, a, False)
        elif pairs == "votes":
            yield a, b, True


def ranked_pairs(
    session: Session, campaign: Campaign, criterion: str | None, pairs: Choice
) -> Iterator[PreferenceVote]:
    """The pairs of every ranking of every annotator, or of a reviewer's decision, by position and name. Orders that
    contradict each other are all kept."""
    places = {entrant: place for place, entrant in enumerate(campaign.entrants)}
    for task in counted(session, campaign):
        given = task.ranks if criterion is None else (task.criteria_ranks or {}).get(criterion)
        if not given:
            continue
        ranks = dict(zip(task.shown, given, strict=True))
        liked = dict(zip(task.shown, (task.scores or {}).get(criterion or "", []), strict=False))
        # In the campaign's order, so that the rows do not come in that of someone's screen.
        scores = {uuid.UUID(entrant): -float(ranks[entrant]) for entrant in sorted(ranks, key=places.__getitem__)}
        about = {
            "source": "campaign",
            "source_name": campaign.name,
            "by": task.by,
            "at": task.at.isoformat() if task.at else None,
            "item": str(task.item_id),
            "criterion": criterion,
            "flag": task.flag,
            "adjudicated": task.adjudicated or None,
        }
        for chosen, rejected, tie in ordered(scores, pairs):
            values = {"chosen_rank": int(-scores[chosen]), "rejected_rank": int(-scores[rejected])}
            if liked:
                values |= {"chosen_score": liked[str(chosen)], "rejected_score": liked[str(rejected)]}
            yield PreferenceVote(task.position, None, chosen, rejected, about | values, tie)


def judged_pairs(
    session: Session,
    judge: Judge,
    order: Mapping[uuid.UUID, int],
    pairs: Choice,
    *,
    silent: Collection[uuid.UUID] = (),
    whole: bool = False,
) -> Iterator[PreferenceVote]:
    """The pairs of every item and turn, by position and turn. `order`: the entrants' places, which order the rows.

    Scores (`single`, `multi`), averaged over the orders of a review, order an item's answers. Pairwise verdicts of both
    orders are one: different ones of style `pairwise` are a tie, others are averaged, weights counting. Unfit are pairs
    with an entrant of `silent`, and unless `whole` those of which only one of two orders can be used, as in the report.
    """
    rows = session.scalars(
        select(Verdict)
        .where(Verdict.judge_id == judge.id, ~Verdict.superseded)
        .order_by(Verdict.position, Verdict.turn, Verdict.id)
        .execution_options(yield_per=1000)
    )
    for (position, turn), verdicts in groupby(rows, key=lambda verdict: (verdict.position, verdict.turn)):
        item = list(verdicts)
        usable = [verdict for verdict in item if verdict.status == "ok" and verdict.value is not None]
        if not usable:
            continue
        about = {
            "source": "judge",
            "source_name": judge.name,
            "by": judge.model,
            "at": max(verdict.created_at for verdict in usable).isoformat(),
            "item": f"{position}.{turn}",
        }
        if judge.style in PAIR_STYLES:
            for first, other, value, unfit in _of_verdicts(item, judge.style, order, pairs, silent, whole):
                preference = {"preference": round(value, 6)}
                yield PreferenceVote(position, turn, first, other, about | preference, value == 0.5, unfit)
            continue
        values = _scores(item)
        for first, other, tie, unfit in _of_scores(values, order, pairs, silent):
            given = {"chosen_score": values[first], "rejected_score": values[other]}
            yield PreferenceVote(position, turn, first, other, about | given, tie, unfit)


def _scores(verdicts: Sequence[Verdict]) -> dict[uuid.UUID, float]:
    """The mean over both orders of a review; none of an answer one of whose orders cannot be used."""
    given: dict[uuid.UUID, list[float | None]] = defaultdict(list)
    for verdict in verdicts:
        given[verdict.a].append(verdict.value if verdict.status == "ok" else None)
    scores = {entrant: [value for value in values if value is not None] for entrant, values in given.items()}
    return {id_: fmean(values) for id_, values in scores.items() if values and len(values) == len(given[id_])}


def _of_scores(
    values: Mapping[uuid.UUID, float], order: Mapping[uuid.UUID, int], pairs: Choice, silent: Collection[uuid.UUID]
) -> Iterator[tuple[uuid.UUID, uuid.UUID, bool, Unfit | None]]:
    """(chosen, rejected, whether they tie, why the pair is unfit) of one item and turn."""
    scores = {entrant: values[entrant] for entrant in sorted(values, key=lambda entrant: order.get(entrant, -1))}
    for chosen, rejected, tie in ordered(
        {entrant: at for entrant, at in scores.items() if entrant not in silent}, pairs
    ):
        yield chosen, rejected, tie, None
    for chosen, rejected, tie in ordered(scores, "all"):
        if chosen in silent or rejected in silent:
            yield chosen, rejected, tie, "entrant_not_valid"


def _of_verdicts(
    verdicts: list[Verdict],
    style: str,
    order: Mapping[uuid.UUID, int],
    pairs: Choice,
    silent: Collection[uuid.UUID],
    whole: bool,
) -> Iterator[tuple[uuid.UUID, uuid.UUID, float, Unfit | None]]:
    """(chosen, rejected, how far the chosen one is preferred: above 1/2, to 1, why the pair is unfit) of one item and
    turn."""
    by_pair: dict[Two, list[OrderedVerdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.b is None:
            continue
        first = order.get(verdict.a, -1) <= order.get(verdict.b, -1)
        both = (verdict.a, verdict.b) if first else (verdict.b, verdict.a)
        by_pair[both].append(in_order(verdict, of=both[0]))
    values: dict[Two, float] = {}
    unfit: dict[Two, Unfit] = {}
    for both, given in by_pair.items():
        merged = together(given, style)
        if merged is None:
            continue
        values[both] = merged.value
        if both[0] in silent or both[1] in silent:
            unfit[both] = "entrant_not_valid"
        elif merged.half and not whole:
            unfit[both] = "one_order"
    fit = {both: value for both, value in values.items() if both not in unfit}
    kept = _best_against_worst(fit) if pairs == "best_worst" else set(fit)
    for both in sorted(kept | set(unfit), key=lambda pair: (order.get(pair[0], -1), order.get(pair[1], -1))):
        (a, b), value = both, values[both]
        if value > 0.5:
            yield a, b, value, unfit.get(both)
        elif value < 0.5:
            yield b, a, 1 - value, unfit.get(both)
        elif pairs == "votes":
            yield a, b, value, unfit.get(both)


def _best_against_worst(values: Mapping[tuple[uuid.UUID, uuid.UUID], float]) -> set[tuple[uuid.UUID, uuid.UUID]]:
    """Best and worst by their mean win share over the pairs that were judged."""
    shares: dict[uuid.UUID, list[float]] = defaultdict(list)
    for (a, b), value in values.items():
        shares[a].append(value)
        shares[b].append(1 - value)
    means = {entrant: sum(of) / len(of) for entrant, of in shares.items()}
    chosen = {frozenset(pair[:2]) for pair in ordered(means, "best_worst")}
    return {pair for pair in values if frozenset(pair) in chosen}
