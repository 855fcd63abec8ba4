"""Figures of the Vicuna announcement's reviews: the scores that one reviewer gives two answers."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import asdict

from steerboard_figures.benchmark_files.reading import Figures, Findings
from steerboard_figures.benchmark_files.repeats import UNORDERED, settled
from steerboard_figures.formats.records import Judgment
from steerboard_statistics.benchmarks import fastchat

Row = list[Judgment]
"""The judgments of one row of a file, one of each answer."""

_REVIEW = ("total_1", "total_2", "share_1", "wins_1", "ties", "wins_2", "flip_rate")


def reviews(file: str, reviewer: str | None, rows: Sequence[Row], findings: Findings) -> Figures:
    """The scores of the two assistants of one file. The same two the other way round are the same pair, with the
    mean scores of both orders; orders that prefer different answers are flips.

    A file of several pairs of assistants has no figure.
    """
    straight = _straight(rows)
    counted = settled(
        straight,
        lambda reviewed: (reviewed[0], reviewed[2]),
        lambda reviewed: reviewed[1][0].at,
        lambda reviewed: _scores(reviewed[1]),
        findings.repeats,
    )
    orders: dict[Hashable, dict[bool, Row]] = {}
    for key, row, turned in counted.kept:
        orders.setdefault(key, {})[turned] = row
    # A pair of which one order was not parsed has no flip, and no score without the bias of the other one.
    both = [(reviews_[False], reviews_[True]) for reviews_ in orders.values() if len(reviews_) == 2]
    outcomes = [two for two in map(_preferences, both) if None not in two]
    scores = [_mean_scores(reviews_.values()) for reviews_ in orders.values()]
    summary = fastchat.review_summary(scores)
    flips = {"flip_rate": sum(first != second for first, second in outcomes) / len(outcomes) if outcomes else None}
    findings.repeated(file, counted.superseded, len(rows))
    if any(row[0].model is None for row in rows):
        findings.warn(f"{file} names answers, not models: assistant 1 gave the first answer of each row")
    if len(outcomes) < len(orders):
        findings.warn(
            f"{file}: {len(orders) - len(outcomes):,} of {len(orders):,} pairs were reviewed in one order only: their "
            "scores have position bias, and they have no flip rate"
        )
    computed = {
        "file": file,
        **({} if reviewer is None else {"judge": reviewer}),
        **asdict(summary),
        **flips,
        "share_1": summary.share_1,
        "superseded": counted.superseded,
    }
    half = sum(len({_scores(row) is None for row in reviews_.values()}) == 2 for reviews_ in orders.values())
    vague = len({key for key, _ in counted.unordered})
    several = len(orders) - len({row[0].question_id for reviews_ in orders.values() for row in reviews_.values()})
    if several:
        why = f"{several:,} questions have reviews of further answers: the file is of several pairs of assistants"
        findings.invalid(file, why)
        return {"file": file, "n": len(orders), **dict.fromkeys(_REVIEW), "valid": False, "reason": why}
    lost = {"unparsed": summary.unparsed - half, "with the other order unparsed": half, UNORDERED: vague}
    return findings.marked(computed, _REVIEW, summary.n - vague, lost, group=file)


def _straight(rows: Sequence[Row]) -> list[tuple[Hashable, Row, bool]]:
    """(what it is about, the review with the answers in the order of the file, whether they were turned for that)"""
    first: dict[Hashable, Hashable] = {}
    straight: list[tuple[Hashable, Row, bool]] = []
    for row in rows:
        ids = [review.model or review.answer_id for review in row]
        key = row[0].question_id, frozenset(ids)
        # Models have one order in the whole file; answers, which nothing else joins, one on each question.
        pair = frozenset(ids) if row[0].model is not None else key
        turned = first.setdefault(pair, ids[0]) != ids[0]
        straight.append((key, row[::-1] if turned else row, turned))
    return straight


def _scores(row: Row) -> tuple[float, float] | None:
    first, second = row[0].value, row[1].value
    return None if first is None or second is None else (first, second)


def _preferences(rows: Sequence[Row]) -> list[float | None]:
    """What each review prefers: 1 for the first answer, -1 for the second, 0 for neither; None if it was not parsed."""
    scores = [_scores(row) for row in rows]
    return [None if both is None else float(both[0] > both[1]) - float(both[0] < both[1]) for both in scores]


def _mean_scores(rows: Collection[Row]) -> list[float] | None:
    """The mean score of each answer over the orders; None where one of these was not parsed."""
    scores = [_scores(row) for row in rows]
    parsed = [both for both in scores if both is not None]
    return [sum(side) / len(side) for side in zip(*parsed, strict=True)] if len(parsed) == len(scores) else None
