"""Whether a round's policy is rated lower than the one that the round began with."""

from __future__ import annotations

import numpy as np

from steerboard.evaluation.recipe_stage.judge import Judged
from steerboard.runs.errors import UnusableInput
from steerboard_contracts.report.decision import WIN_RATE, RoundDecision
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.comparison import PairRow, mirrored
from steerboard_statistics.bootstrap import Floats
from steerboard_statistics.comparison import compare_pairs, compare_scores

_NAMES = ("after", "before")


def decided_by(judge: Judged | None, entrants: int, seed: int) -> RoundDecision:
    """The decision by the judge of the stage, between its last two entrants. Raises `UnusableInput` where the judge is
    gone, or gave too little to decide by."""
    if judge is None:
        raise UnusableInput("the judge of the round has been deleted", hint="Start the recipe again.")
    before, after = entrants - 2, entrants - 1
    silence = judge.silence(before, after)
    if silence is not None:
        raise UnusableInput(
            f"{silence}, so there is nothing to decide by",
            hint="Retry the judge on the page of the evaluation, then resume the run.",
        )
    if judge.scores is not None:
        return decided(judge.name, "score", judge.scores[:, before], judge.scores[:, after], seed)
    values = judge.against(after, before)
    rows = [(row, *_NAMES, float(value)) for row, value in enumerate(values) if np.isfinite(value)]
    compared = compare_pairs(rows, _NAMES, seed=seed)
    pair = next(iter(compared.pairs), None)
    wins = pair.win_rate if pair is not None else None
    won = wins or Estimate(value=None, n=0)
    return _decision(judge.name, WIN_RATE, compared.items, mirrored(won, 1.0), won, pair)


def decided(judge: str, units: str, before: Floats, after: Floats, seed: int) -> RoundDecision:
    """The last entrant against the one before it, paired by prompt: scores by `judge`, (prompts,) each."""
    compared = compare_scores(np.array([after, before]).T, _NAMES, seed=seed, pairwise_only=True)
    means, (pair,) = {row.entrant: row.mean for row in compared.scores}, compared.pairs
    return _decision(judge, units, compared.items, means["before"], means["after"], pair)


def _decision(
    judge: str, units: str, prompts: int, before: Estimate, after: Estimate, pair: PairRow | None
) -> RoundDecision:
    difference = pair.difference if pair is not None else None
    return RoundDecision(
        judge=judge,
        units=units,
        prompts=prompts,
        before=before,
        after=after,
        difference=difference or Estimate(value=None, n=prompts),
        p=pair.p if pair is not None else None,
        fell=pair is not None and pair.significant and difference is not None and (difference.value or 0.0) < 0,
    )
