"""A preference model compares the answers of each group: every answer's mean probability to win."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.fields import Precision
from steerboard_contracts.report.tournament import Tournament
from steerboard_statistics.bootstrap import ratio_interval
from steerboard_workers.alignment.rendering.preference_prompt import Comparison
from steerboard_workers.alignment.rendering.templates import Response
from steerboard_workers.alignment.tournament import schedule, win_rates
from steerboard_workers.stages.rows.kept_comparisons import ComparisonRequest, compared
from steerboard_workers.stages.rows.scored_answers import Answers
from steerboard_workers.stages.runtime import Stage

# Rows of two answers; the first is that with the earlier candidate.
Bout = tuple[int, int]


class Held(NamedTuple):
    """`scores`: the win rates of all answers (rows,); `before`: comparisons that earlier attempts had made."""

    scores: NDArray[np.float64]
    facts: Tournament
    before: int


def tournament(
    stage: Stage,
    judge: str,
    answers: Answers,
    *,
    opponents: int,
    seed: int,
    precision: Precision,
    batch_tokens: int,
) -> Held:
    """Lets answers play by the model of input `judge`. Equal texts play once, and share what they win.

    Raises `BadInput` (`wrong_role`, `verdict_not_one_token`) and `BadRow` for two answers that do not fit the model.
    """
    players = [_different(answers, rows) for rows in answers.groups]
    pairs = [schedule(len(rows), opponents, seed, number) for number, rows in enumerate(players)]
    bouts = [[(rows[a], rows[b]) for a, b in met] for rows, met in zip(players, pairs, strict=True)]
    preferences, before = compared(
        stage,
        judge,
        ("a", "b"),
        _comparisons(stage, answers, players, bouts),
        sum(map(len, bouts)),
        precision=precision,
        batch_tokens=batch_tokens,
    )
    scores = np.zeros(len(answers.texts))
    for rows, group, met, held in zip(answers.groups, players, pairs, bouts, strict=True):
        rates = win_rates(len(group), met, [preferences[bout].p for bout in held])
        of_text = {answers.texts[row]: rate for row, rate in zip(group, rates, strict=True)}
        for row in rows:
            scores[row] = of_text[answers.texts[row]]
    flips = [sum(preferences[bout].flips for bout in held) for held in bouts]
    facts = Tournament(
        judge=stage.model(judge).name,
        opponents=opponents,
        comparisons=len(preferences),
        ties=sum(preference.p == 0.5 for preference in preferences.values()),
        flips=sum(flips),
        flip_rate=ratio_interval(flips, [len(held) for held in bouts], seed=seed),
    )
    return Held(scores, facts, before)


def _different(answers: Answers, rows: list[int]) -> list[int]:
    """The first of the rows with each text."""
    return list({answers.texts[row]: row for row in reversed(rows)}.values())[::-1]


def _comparisons(
    stage: Stage, answers: Answers, players: list[list[int]], bouts: list[list[Bout]]
) -> Iterator[ComparisonRequest]:
    """Group by group, as soon as all texts of one have been read; those of complete groups are forgotten."""
    group_of = {row: number for number, rows in enumerate(players) for row in rows if bouts[number]}
    texts: dict[int, dict[int, Response]] = {}
    for place, row in enumerate(stage.rows(answers.first)):
        number = group_of.get(place)
        if number is None:
            continue
        known = texts.setdefault(number, {})
        known[place] = row["response"]
        if len(known) == len(players[number]):
            del texts[number]
            for a, b in bouts[number]:
                name = f"the pair of rows {a} and {b} of {answers.name}"
                yield ComparisonRequest((a, b), name, Comparison(row["prompt"], known[a], known[b]))
