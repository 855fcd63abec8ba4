"""What each reward model gave: means, its own accuracy, and what its rewards have to do with length."""

from __future__ import annotations

import numpy as np

from steerboard.evaluation.report.data import EvaluationData, Floats, Ints, RewardFacts
from steerboard.evaluation.report.sections.outcomes import few_items
from steerboard.evaluation.report.sections.several_rewards import reward_curves, reward_grid
from steerboard.evaluation.report.sources import Source, moved, names_of, signs_of
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.rewards import BestOfN, Calibration, LengthCell, RewardReport
from steerboard_contracts.stage.outputs import RewardSummary
from steerboard_statistics.bootstrap import divide
from steerboard_statistics.comparison import compare_scores
from steerboard_statistics.proportions import proportion_interval
from steerboard_statistics.rewards import MIN_SAMPLES, best_of_n, calibration, histograms, length_cells, pair_accuracy


def reward_sections(data: EvaluationData) -> tuple[list[RewardReport], list[Source]]:
    reports, sources = [], []
    for facts in data.rewards:
        report, source = _section(data, facts)
        reports.append(report)
        sources.append(source)
    return reports, sources


def _section(data: EvaluationData, facts: RewardFacts) -> tuple[RewardReport, Source]:
    rewards, lengths = _samples(data, facts)
    there = np.isfinite(rewards).sum(axis=2)
    means = divide(np.nansum(rewards, axis=2), there)
    columns = np.flatnonzero(there.any(axis=0))
    names = names_of(data, columns)
    # z is a straight line of the reward: who is better, and every test, is the same in both.
    scale, shift = (facts.normaliser.sd, facts.normaliser.mean) if facts.normaliser else (1.0, 0.0)
    scores = (means - shift) / scale
    comparison = compare_scores(scores[:, columns], names, seed=data.seed)
    accuracy, calibrated = _held_out(facts)
    values = {name: facts.values[facts.entrant == column] for name, column in zip(names, columns, strict=True)}
    in_z = {name: (of - shift) / scale for name, of in values.items()}
    report = RewardReport(
        reward_model=facts.name,
        content_hash=facts.content_hash,
        state=facts.state,
        trained=[entrant.name for entrant in data.entrants if facts.content_hash in entrant.trained_on],
        comparison=comparison,
        units="z" if facts.normaliser else "raw",
        raw=moved(comparison.scores, scale, shift),
        accuracy=accuracy,
        held_out_changes=facts.held_out_changes,
        calibration=calibrated,
        histogram_raw=histograms(values),
        histogram_z=histograms(in_z) if facts.normaliser else {},
        length_correlation=_heat_map(data, rewards, lengths, columns),
        best_of_n=_best_of_n(data, (rewards - shift) / scale, columns),
        warnings=[],
        benchmarks=facts.benchmarks,
        curves=reward_curves(data, comparison),
    )
    report.warnings.extend(_warnings(report))
    return report, Source("reward", facts.name, scores, signs_of(scores), comparison)


def _samples(data: EvaluationData, facts: RewardFacts) -> tuple[Floats, Floats]:
    """Raw rewards, and characters of the last turns that they are of: (prompts, entrants, samples), NaN for none."""
    answers = data.answers
    width = 1 + int(max(facts.sample.max(initial=0), answers.sample.max(initial=0)))
    rewards, lengths = reward_grid(data, facts, width), np.full((*data.shape, width), np.nan)
    turns = np.array([prompt.turns for prompt in data.prompts], dtype=np.int64)
    last = np.minimum(turns[answers.row], answers.characters.shape[1]) - 1
    lengths[answers.row, answers.entrant, answers.sample] = answers.characters[np.arange(len(last)), last]
    return rewards, lengths


def _held_out(facts: RewardFacts) -> tuple[Estimate, Calibration | None]:
    """Accuracy on held-out preference pairs, as its run measured them; a tie is wrong."""
    summary = RewardSummary.model_validate(facts.summary or {})
    if summary.margins:
        return pair_accuracy(summary.margins), calibration(summary.margins)
    return proportion_interval(summary.correct, summary.pairs), None


def _heat_map(data: EvaluationData, rewards: Floats, lengths: Floats, columns: Ints) -> list[LengthCell]:
    positions = [prompt.position for prompt in data.prompts]
    cells: list[LengthCell] = []
    for column in columns:
        if np.isfinite(rewards[:, column]).sum(axis=1).max(initial=0) >= MIN_SAMPLES:
            name = data.entrants[column].name
            cells += length_cells(name, positions, rewards[:, column], lengths[:, column])
    return cells


def _best_of_n(data: EvaluationData, rewards: Floats, columns: Ints) -> list[BestOfN]:
    """Curves in the units of the comparison, of entrants with more than one sample."""
    made = []
    for column in columns:
        sizes, best = best_of_n(rewards[:, column], seed=data.seed)
        if len(sizes) > 1:
            made.append(BestOfN(entrant=data.entrants[column].name, n=sizes, reward=best))
    return made


def _warnings(report: RewardReport) -> list[str]:
    warnings = []
    if report.trained:
        warnings.append(
            f"circular: {', '.join(report.trained)} learned from this model's rewards, or had answers chosen by them; "
            "look at people, judges and independent reward models too"
        )
    if report.accuracy.value is not None and report.accuracy.low is not None and report.accuracy.low <= 0.5:
        warnings.append(
            f"it is right on {report.accuracy.value:.1%} of {report.accuracy.n} held-out pairs, which may be chance"
        )
    warnings += few_items(report.comparison)
    return warnings
