"""Length-matched win rates, over prompts with two answers of similar length, and length-adjusted ones, over all.

A source that likes short or long answers may prefer an entrant for that alone. The first leaves out the prompts where
one answer is much longer. That costs items, assumes no model of what length does, and takes only most of its effect
away: up to the ratio, the longer answer may still win for its length. The second keeps all items and assumes a model.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from steerboard.evaluation.report.data import EvaluationData, Floats
from steerboard.evaluation.report.sources import Source, pair_columns
from steerboard_statistics.length_adjusted import length_adjusted
from steerboard_statistics.proportions import win_rate_interval

# The largest ratio of the longer answer's length to the shorter one's.
MOST_RATIO = 1.5


def add_length_matched(data: EvaluationData, sources: Iterable[Source], characters: Floats) -> None:
    """Adds length-matched figures to the pairs of each comparison; `characters` [prompts, entrants] is NaN without an
    answer."""
    places = {entrant.name: place for place, entrant in enumerate(data.entrants)}
    first, second = pair_columns(len(data.entrants))
    columns = {pair: column for column, pair in enumerate(zip(first.tolist(), second.tolist(), strict=True))}
    shorter = np.minimum(characters[:, first], characters[:, second])
    longer = np.maximum(characters[:, first], characters[:, second])
    alike = longer <= MOST_RATIO * shorter  # never of NaN
    for source in sources:
        for row in source.comparison.pairs:
            a, b = places[row.a], places[row.b]
            column = columns[min(a, b), max(a, b)]
            every = source.signs[:, column] * (1 if a < b else -1)
            row.length_adjusted = length_adjusted((every + 1) / 2, characters[:, a], characters[:, b])
            signs = every[alike[:, column]]
            row.length_matched = win_rate_interval(
                int((signs > 0).sum()), int((signs == 0).sum()), int((signs < 0).sum())
            )
