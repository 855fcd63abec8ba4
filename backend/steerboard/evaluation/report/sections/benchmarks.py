"""The figures that benchmarks publish: AlpacaEval's, Arena-Hard's and MT-Bench's, as those projects compute them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import numpy as np

from steerboard.evaluation.report.data import Bools, EvaluationData, Floats, JudgeFacts
from steerboard.evaluation.report.verdict_tables import ScoreUnits
from steerboard_contracts.report.sections.judges import AlpacaRow, ArenaRow, SingleRow
from steerboard_statistics.benchmarks import alpaca_eval, arena_hard, fastchat, length_controlled


def baseline_column(data: EvaluationData, judge: JudgeFacts) -> int | None:
    """The entrant that all others were judged against: as the settings name it, else the one in most verdicts."""
    names = data.names()
    named = judge.settings.get("baseline")
    if named in names:
        return names.index(named)
    ids = [str(entrant.id) for entrant in data.entrants]
    if named in ids:
        return ids.index(named)
    verdicts = judge.verdicts
    met = Counter(np.concatenate([verdicts.a[verdicts.b >= 0], verdicts.b[verdicts.b >= 0]]).tolist())
    return int(max(met, key=lambda column: (met[column], -column))) if met else None


def alpaca_rows(data: EvaluationData, judge: JudgeFacts, characters: Floats) -> list[AlpacaRow]:
    """Every entrant against the baseline. Length-controlled without the difficulties of AlpacaEval's 805 prompts and
    its gamed baselines, which belong to its own data: what that project calls `length_controlled_minimal`."""
    baseline = baseline_column(data, judge)
    if baseline is None:
        return []
    lengths = np.nansum(characters, axis=2)
    answered: Bools = np.asarray(np.isfinite(characters).any(axis=2))
    verdicts = judge.verdicts
    made = []
    for column, entrant in enumerate(data.entrants):
        turned: Bools = (verdicts.a == baseline) & (verdicts.b == column)
        chosen: Bools = turned | ((verdicts.a == column) & (verdicts.b == baseline))
        if column == baseline or not chosen.any():
            continue
        p = np.where(turned, 1 - verdicts.value, verdicts.value)[chosen]
        given = [None if np.isnan(value) else float(value) for value in p]
        rows = verdicts.row[chosen]
        figures = alpaca_eval.of_probabilities(given)
        if figures.win_rate is None or figures.discrete_win_rate is None:
            continue
        controlled: float | None = None
        there = answered[rows, column] & answered[rows, baseline]
        try:
            some = [value for value, known in zip(given, there, strict=True) if known]
            fit = length_controlled.fit(
                some, lengths[rows, baseline][there].tolist(), lengths[rows, column][there].tolist()
            )
            controlled = fit.win_rate
        except ValueError:
            pass  # The report shows that there is none.
        own = lengths[answered[:, column], column]
        made.append(
            AlpacaRow(
                entrant=entrant.name,
                win_rate=figures.win_rate,
                standard_error=figures.standard_error,
                discrete_win_rate=figures.discrete_win_rate,
                n_wins=figures.wins,
                n_losses=figures.losses,
                n_ties=figures.draws,
                n=figures.n,
                length_controlled=controlled,
                average_length=float(own.mean()) if len(own) else None,
            )
        )
    return made


def arena_rows(data: EvaluationData, judge: JudgeFacts) -> list[ArenaRow]:
    """Every entrant against the baseline, from all battles."""
    baseline = baseline_column(data, judge)
    if baseline is None:
        return []
    names, verdicts = data.names(), judge.verdicts
    used = verdicts.ok & (verdicts.b >= 0)
    columns = (verdicts.a, verdicts.b, verdicts.value, verdicts.weight, verdicts.row)
    battles = [
        arena_hard.Battle(names[a], names[b], float(value), int(weight), int(row))
        for a, b, value, weight, row in zip(*(column[used] for column in columns), strict=True)
    ]
    try:
        rates = arena_hard.win_rates(battles, names[baseline])
    except ValueError:
        return []
    return [
        ArenaRow(entrant=rate.model, win_rate=rate.win_rate, low=rate.low, high=rate.high, n=rate.n) for rate in rates
    ]


def single_rows(data: EvaluationData, judge: JudgeFacts, units: ScoreUnits) -> list[SingleRow]:
    """MT-Bench's means by turn and category; the best average first."""
    names, columns = data.names(), np.unique(judge.verdicts.a).tolist()
    ratings = [
        fastchat.Rating(row, names[column], turn, scores[column])
        for row, turn, scores in zip(units.row.tolist(), units.turn.tolist(), units.scores.tolist(), strict=True)
        for column in columns
    ]
    categories: dict[Hashable, str] = {
        row: prompt.category for row, prompt in enumerate(data.prompts) if prompt.category is not None
    }
    by_category = fastchat.by_category(ratings, categories)
    return [
        SingleRow(
            entrant=summary.model,
            turn_1=summary.turns.get(1),
            turn_2=summary.turns.get(2),
            average=summary.average,
            n=summary.n,
            by_category=by_category.get(summary.model, {}),
        )
        for summary in fastchat.single_summary(ratings)
    ]
