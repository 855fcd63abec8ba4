"""Figure 6 of the paper: how often each entrant has each rank, and the mean of N + 1 - rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steerboard.evaluation.report.data import Floats, Ints
from steerboard_contracts.report.evaluation import RankShare
from steerboard_contracts.report.sections.comparison import By
from steerboard_statistics.bootstrap import mean_interval
from steerboard_statistics.ranks import rank_scores, without_noise


def rank_shares(
    scores: Floats, rows: Ints, entrants: Sequence[str], by: By, source: str, *, seed: int
) -> list[RankShare]:
    """scores (rankings, entrants), higher the better; rows (rankings,): the prompt of each.

    Rankings that lack an entrant are left out, for their ranks mean another thing. Several rankings of one prompt share
    its weight. Answers that tie share the ranks that they take. `n` counts prompts.
    """
    whole = np.isfinite(scores).all(axis=1)
    scores, rows = without_noise(scores[whole]), rows[whole]
    if not scores.size:
        return []
    prompts, place = np.unique(rows, return_inverse=True)
    better = (scores[:, None, :] > scores[:, :, None]).sum(axis=2)[:, :, None]
    equal = (scores[:, None, :] == scores[:, :, None]).sum(axis=2)[:, :, None]
    rank = np.arange(scores.shape[1])
    taken = ((rank >= better) & (rank < better + equal)) / equal
    weight = 1 / np.bincount(place)[place] / len(prompts)
    shares = np.einsum("r,rek->ek", weight, taken)
    means = np.zeros((len(prompts), scores.shape[1]))
    np.add.at(means, place, rank_scores(-scores))
    means /= np.bincount(place)[:, None]
    return [
        RankShare(
            by=by,
            source=source,
            entrant=name,
            shares=shares[column].tolist(),
            n=len(prompts),
            mean_score=mean_interval(means[:, column], seed=seed),
        )
        for column, name in enumerate(entrants)
    ]
