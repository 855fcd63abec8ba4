"""Whether a reward model prefers an entrant more often than a source that is independent of it does.

Two win rates on the same items are not independent of each other, so that their intervals may overlap although they
differ, and the other way round. The test is on the difference at each item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from steerboard.evaluation.report.data import EvaluationData, Floats
from steerboard.evaluation.report.sources import Source, pair_columns
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.evaluation import EvaluationReport, WinRateDifference
from steerboard_contracts.report.sections.comparison import By, mirrored
from steerboard_contracts.report.sections.rewards import RewardReport
from steerboard_statistics.bootstrap import Resamples
from steerboard_statistics.proportions import win_rate_interval

# Fewer items are not evidence for or against.
MIN_ITEMS = 10


def win_rate_differences(
    data: EvaluationData, rewards: Sequence[RewardReport], models: Sequence[Source], others: Iterable[Source]
) -> list[WinRateDifference]:
    """Differences of every reward model that may have trained an entrant to each source that may be evidence: `others`,
    and the models from whose scores nothing here learned. `models` are the sources of `rewards`."""
    unknown = any(not entrant.known_origin for entrant in data.entrants)
    teachers = [model for reward, model in zip(rewards, models, strict=True) if reward.trained or unknown]
    evidence = [*others, *(model for reward, model in zip(rewards, models, strict=True) if not reward.trained)]
    return [
        row for teacher in teachers for other in evidence if other is not teacher for row in _rows(data, teacher, other)
    ]


def difference_of(
    report: EvaluationReport, reward_model: str, by: By, source: str, entrant: str, vs: str
) -> Estimate | None:
    """The difference as seen from `entrant`."""
    for row in report.win_rate_differences:
        if (row.reward_model, row.by, row.source) == (reward_model, by, source):
            if (row.a, row.b) == (entrant, vs):
                return row.difference
            if (row.b, row.a) == (entrant, vs):
                return mirrored(row.difference, 0.0)
    return None


def _rows(data: EvaluationData, teacher: Source, other: Source) -> Iterator[WinRateDifference]:
    differences = (teacher.signs - other.signs) / 2
    counts = np.isfinite(differences).sum(axis=0)
    columns = np.flatnonzero(counts >= MIN_ITEMS)
    if not len(columns):
        return
    known = differences[:, columns]
    first, second = pair_columns(len(data.entrants))
    made = Resamples(len(known), seed=data.seed).estimates(known)
    for column, difference in zip(columns, made, strict=True):
        yield WinRateDifference(
            reward_model=teacher.label,
            by=other.by,
            source=other.label,
            a=data.entrants[first[column]].name,
            b=data.entrants[second[column]].name,
            difference=difference
            if difference.low is not None
            else _of_equal_items(difference, differences[:, column]),
        )


def _of_equal_items(mean: Estimate, differences: Floats) -> Estimate:
    """Equal items resample to an interval without width, which they don't prove: here it is that of as many points won
    and lost."""
    points = differences[np.isfinite(differences)]
    won, lost = float(points[points > 0].sum()), float(-points[points < 0].sum())
    share = win_rate_interval(won, len(points) - won - lost, lost)
    low, high = (None if end is None else 2 * end - 1 for end in (share.low, share.high))
    return Estimate(value=mean.value, low=low, high=high, n=mean.n)
