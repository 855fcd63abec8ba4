"""Figures of judgments of FastChat, Arena-Hard, arena-bench and the Vicuna announcement."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from steerboard.evaluation.formats.arena_hard import BASELINE
from steerboard.evaluation.formats.records import Judgment
from steerboard_contracts.errors import BadInput
from steerboard_statistics import ranks
from steerboard_statistics.benchmarks import arena_hard, fastchat

Row = list[Judgment]
"""The judgments of one row of a file: one, or one of each order or answer."""

_WINNERS: dict[float | None, fastchat.Winner] = {1.0: "model_1", 0.5: "tie", 0.0: "model_2", None: "error"}


def singles(rows: Sequence[Row]) -> dict[str, Any]:
    """Means by turn; and of several models their ranks on the questions that all have a score on."""
    before: Counter[str] = Counter()
    ratings = []
    for (one,) in rows:
        model = str(one.model)
        # A row without an id is about the question at its place.
        question: Hashable = before[model] if one.question_id is None else one.question_id
        before[model] += 1
        ratings.append(fastchat.Rating(question, model, one.turn, one.value, one.at))
    summary = fastchat.single_summary(ratings)
    models = [one.model for one in summary]
    found: dict[str, Any] = {
        "models": [
            {
                **asdict(one),
                "turns": {str(turn): mean for turn, mean in one.turns.items()},
                "counts": {str(turn): count for turn, count in one.counts.items()},
            }
            for one in summary
        ]
    }
    if len(models) > 1:
        found |= _ranked(ratings, models)
    return found


def _ranked(ratings: Sequence[fastchat.Rating], models: Sequence[str]) -> dict[str, Any]:
    """A question counts once, by the mean over those of its turns that all models have a score on: two turns of one
    conversation are no two independent items."""
    turns: dict[Hashable, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in fastchat.newest(ratings)[0]:
        if row.score is not None and row.score != fastchat.UNPARSED:
            turns[row.question_id][row.turn][row.model] = row.score
    whole = [
        np.mean(complete, axis=0)
        for of_question in turns.values()
        if (complete := [[turn[m] for m in models] for turn in of_question.values() if len(turn) == len(models)])
    ]
    if not whole:
        return {"items_of_all": 0, "rank_scores": None, "friedman": None}
    scores = ranks.without_noise(whole)
    tested = ranks.friedman(scores)
    return {
        "items_of_all": len(whole),
        "rank_scores": dict(zip(models, ranks.rank_scores(-scores).mean(axis=0).tolist(), strict=True)),
        "friedman": tested.model_dump() if tested else None,
    }


def pairs(rows: Sequence[Row]) -> dict[str, Any]:
    """A game is one verdict; a row without the second game has been judged in one order."""
    kept, superseded = _newest(rows, lambda one: (one.model, one.other, one.turn))
    games = [
        fastchat.Games(str(row[0].model), str(row[0].other), _WINNERS[row[0].value], _WINNERS[row[-1].value])
        for row in kept
    ]
    models = [
        {**asdict(one), "n": one.n, "win_rate_adjusted": one.win_rate_adjusted, "flip_rate": one.flip_rate}
        for one in fastchat.pair_summary(games)
    ]
    return {"superseded": superseded, "one_order": sum(len(row) == 1 for row in kept), "models": models}


def reviews(rows: Sequence[Row]) -> dict[str, Any]:
    """Of the two assistants of one file."""
    kept, superseded = _newest(rows, lambda one: (one.answer_id, one.model))
    scores = [None if None in (row[0].value, row[1].value) else [row[0].value, row[1].value] for row in kept]
    summary = fastchat.review_summary(scores)
    return {**asdict(summary), "share_1": summary.share_1, "superseded": superseded}


def arena(rows: Sequence[Row], baseline: str | None) -> dict[str, Any]:
    """Against `baseline`, else the one that most rows name, else the one of Arena-Hard v0.1, which names none.

    Raises `BadInput` where nobody fought against it.
    """
    kept, superseded = _newest(rows, lambda one: (one.model, one.other))
    named = Counter(row[0].other for row in kept if row[0].other is not None)
    chosen = baseline or (named.most_common(1)[0][0] if named else None) or BASELINE
    games = [game for row in kept for game in row]
    battles = [
        arena_hard.Battle(str(game.model), game.other or chosen, game.value, game.weight)
        for game in games
        if game.value is not None
    ]
    try:
        rates = arena_hard.win_rates(battles, chosen)
    except ValueError as error:
        raise BadInput(str(error), code="missing_input", hint="Name another baseline with --baseline.") from error
    rated = {rate.model for rate in rates}
    return {
        "baseline": chosen,
        "unparsed": sum(game.value is None for game in games),
        "superseded": superseded,
        # Models whose games were not parsed, or that no chain of games joins to the baseline.
        "unrated": sorted({str(game.model) for game in games} - rated),
        "models": [asdict(rate) for rate in rates],
    }


def judges(rows: Sequence[Row]) -> dict[str, int]:
    """How many rows each judge has."""
    return dict(Counter(row[0].judge for row in rows if row[0].judge is not None).most_common())


def _newest(rows: Sequence[Row], about: Callable[[Judgment], Hashable]) -> tuple[list[Row], int]:
    """(rows that count, how many they supersede): of a judge's rows about the same thing the newest one, among equals
    the later. Rows without a question's id are all different."""
    best: dict[Hashable, int] = {}
    for index, row in enumerate(rows):
        first = row[0]
        key = index if first.question_id is None else (first.question_id, first.judge, about(first))
        if key not in best or _time(first) >= _time(rows[best[key]][0]):
            best[key] = index
    kept = [rows[index] for index in sorted(best.values())]
    return kept, len(rows) - len(kept)


def _time(judgment: Judgment) -> float:
    return -1.0 if judgment.at is None else judgment.at
