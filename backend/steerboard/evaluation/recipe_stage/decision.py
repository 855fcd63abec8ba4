"""Whether a round's policy is rated lower than the one that the round began with."""

from __future__ import annotations

import numpy as np

from steerboard.evaluation.recipe_stage.table import Findings
from steerboard_contracts.report.decision import RoundDecision
from steerboard_contracts.report.estimate import Estimate
from steerboard_statistics.comparison import compare_scores


def decided(findings: Findings, seed: int) -> RoundDecision:
    """The last entrant against the one before it, paired by prompt, by the first reward model."""
    judge = findings.main
    before, after = (judge.in_units(rewards) for rewards in judge.rewards[-2:])
    found = compare_scores(np.array([after, before]).T, ["after", "before"], seed=seed, pairwise_only=True)
    means, (pair,) = {row.entrant: row.mean for row in found.scores}, found.pairs
    return RoundDecision(
        judge=judge.name,
        units="z" if judge.normaliser else "raw",
        prompts=found.items,
        before=means["before"],
        after=means["after"],
        difference=pair.difference or Estimate(value=None, n=found.items),
        p=pair.p,
        fell=pair.significant and pair.difference is not None and (pair.difference.value or 0.0) < 0,
    )
