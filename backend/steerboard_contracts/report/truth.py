"""What a report shows where a program knows how good each answer is: control and gains by the truth, not by a reward
model that may be wrong or gamed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from steerboard_contracts.known_quality import KnownQuality
from steerboard_contracts.report.baseline import baseline_place
from steerboard_contracts.report.pipeline import MethodRow, PipelineReport

# Right on so many held-out pairs, a reward model has learned what the program knows.
ACCURACY_BAR = 0.8
# Control spans at least this share of the program's range.
SPREAD_BAR = 0.4
# Answers are as varied as the baseline's, to this share of its distinct pairs of words.
VARIETY_BAR = 0.8
# At most this share more of them is empty or repeated than of the baseline's.
SPOILT_BAR = 0.05
# From the lowest to the highest value; None: its checks are those of the paper alone.
_RANGES: Mapping[KnownQuality, float | None] = {"synthetic": None, "sentiment": 10.0}


def checks_by_truth(report: PipelineReport, labels: Sequence[str]) -> list[tuple[str, bool]]:
    """Claims with their figures, and whether each is met. `labels`: of the methods, in their order."""
    width = _RANGES[report.quality] if report.quality is not None else None
    place = baseline_place(report.methods)
    if width is None:
        return []
    results = [*_reward_model(report), *_control(report, labels, width)]
    if place is None:
        return results
    return [*results, *_gains(report, labels, place), _variety(report, labels, place), *_spoilt(report, labels, place)]


def _reward_model(report: PipelineReport) -> list[tuple[str, bool]]:
    model = report.reward_model
    if model.held_out_accuracy is None:
        return []
    words = f"The reward model is right on {model.held_out_accuracy:.0%} of {model.pairs} held-out pairs"
    return [(f"{words} (at least {ACCURACY_BAR:.0%})", model.held_out_accuracy >= ACCURACY_BAR)]


def _control(report: PipelineReport, labels: Sequence[str], width: float) -> list[tuple[str, bool]]:
    """A claim for each policy, at each guidance at which it was asked for several scores."""
    groups: dict[tuple[str, float], list[tuple[float, MethodRow, str]]] = {}
    for row, label in zip(report.methods, labels, strict=True):
        score = row.score.score if row.score is not None else None
        if score is not None and row.best_of is None and row.quality_mean is not None:
            groups.setdefault((row.entrant, row.guidance), []).append((score, row, label))
    results = []
    for group in groups.values():
        group.sort(key=lambda entry: entry[0])
        means = [row.quality_mean or 0.0 for _, row, _ in group]
        if len(group) < 2:
            continue
        (_, low, _), (_, high, label) = group[0], group[-1]
        rises = all(a < b for a, b in pairwise(means))
        apart = is_above(high.quality_low, low.quality_high)
        reached = ", ".join(f"{mean:.2f}" for mean in means)
        targets = ", ".join(f"{score:g}" for score, _, _ in group)
        words = (
            f"By the truth, {label.rpartition(' at ')[0]} reaches {reached} when asked for {targets}: rising, and "
            f"{SPREAD_BAR * width:g} of {width:g} or more apart at the ends, with intervals apart"
        )
        results.append((words, rises and apart and means[-1] - means[0] >= SPREAD_BAR * width))
    return results


def is_above(low: float | None, high: float | None) -> bool:
    """Whether an interval that begins at `low` is above one that ends at `high`; not where one of them is unknown."""
    return low is not None and high is not None and low > high


def _gains(report: PipelineReport, labels: Sequence[str], place: int) -> list[tuple[str, bool]]:
    """A claim for each entrant without a score, paired with the baseline over the prompts."""
    results = []
    for number, (row, label) in enumerate(zip(report.methods, labels, strict=True)):
        if number == place or row.score is not None or row.quality_gain is None:
            continue
        low, gain = row.quality_gain.low, row.quality_gain.in_words("{:+.2f}".format)
        words = f"By the truth, {label} is {gain} from {labels[place]}"
        results.append((f"{words}: the whole interval above 0", low is not None and low > 0))
    return results


def _variety(report: PipelineReport, labels: Sequence[str], place: int) -> tuple[str, bool]:
    base = report.methods[place].distinct_2
    least, label = min((row.distinct_2, label) for row, label in zip(report.methods, labels, strict=True))
    words = (
        f"The least varied answers, of {label}, have {least:.2f} distinct pairs of words to {base:.2f} of "
        f"{labels[place]} (at least {VARIETY_BAR:.0%})"
    )
    return words, least >= VARIETY_BAR * base


def _spoilt(report: PipelineReport, labels: Sequence[str], place: int) -> list[tuple[str, bool]]:
    """Empty answers and repeated ones together: none is both. Reports of earlier versions have no such shares."""
    shares = [(_share(row), label) for row, label in zip(report.methods, labels, strict=True)]
    known = [(share, label) for share, label in shares if share is not None]
    base, name = shares[place]
    if base is None or len(known) < 2:
        return []
    most, label = max(known)
    words = f"Most empty or repeated answers has {label}, {most:.1%} to {base:.1%} of {name}"
    return [(f"{words} (at most {100 * SPOILT_BAR:g} points more)", most <= base + SPOILT_BAR)]


def _share(row: MethodRow) -> float | None:
    return None if row.empty is None or row.repeated is None else row.empty + row.repeated
