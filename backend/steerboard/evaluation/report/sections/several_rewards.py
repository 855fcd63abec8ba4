"""Several reward models on the same answers: how they go together, the sums that policies were trained on, and how each
reward follows what a policy is asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steerboard.evaluation.report.data import EvaluationData, Floats, RewardFacts
from steerboard.evaluation.report.sources import names_of
from steerboard_contracts.conditions.condition import Condition, varied
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.report.correlations import Correlations
from steerboard_contracts.report.sections.comparison import Comparison
from steerboard_contracts.report.sections.rewards import Requested, RewardCurve, RewardSum
from steerboard_statistics.bootstrap import divide
from steerboard_statistics.comparison import compare_scores
from steerboard_statistics.correlation import correlations, spearman


def reward_grid(data: EvaluationData, facts: RewardFacts, width: int) -> Floats:
    """Raw rewards (prompts, entrants, width), NaN for none; `width` samples of each answer."""
    grid = np.full((*data.shape, width), np.nan)
    grid[facts.row, facts.entrant, facts.sample] = facts.values
    return grid


def reward_correlations(data: EvaluationData) -> Correlations | None:
    """Correlations over the answers that every reward model has scored; None where there are fewer than two models."""
    if len(data.rewards) < 2:
        return None
    return correlations([facts.name for facts in data.rewards], [grid.ravel() for grid in _grids(data, data.rewards)])


def reward_sums(data: EvaluationData) -> list[RewardSum]:
    """The figures of every sum that an entrant was trained on, where all its reward models have scored answers here."""
    by_hash = {facts.content_hash: facts for facts in data.rewards}
    made: dict[str, RewardSum] = {}
    for entrant in data.entrants:
        normaliser = entrant.summed_rewards
        if normaliser is None:
            continue
        key = normaliser.model_dump_json()
        parts = [by_hash.get(part.reward_model_hash or "") for part in normaliser.parts]
        known = [facts for facts in parts if facts is not None]
        if key in made:
            made[key].trained.append(entrant.name)
        elif len(known) == len(parts):
            made[key] = _sum(data, normaliser, known)
            made[key].trained.append(entrant.name)
    return list(made.values())


def reward_curves(data: EvaluationData, comparison: Comparison) -> list[RewardCurve]:
    """Mean rewards of each model that is asked for several values of one attribute, at one guidance, in rising order
    of it. The best of several answers is no figure of the model."""
    means = {row.entrant: row.mean for row in comparison.scores}
    by_model: dict[tuple[str, float], list[tuple[str, Condition]]] = {}
    for row in data.entrants:
        if row.model is not None and row.score is not None and row.best_of is None and row.name in means:
            by_model.setdefault((row.model, row.guidance), []).append((row.name, row.score))
    curves = []
    for (model, guidance), entrants in by_model.items():
        along = varied(score for _, score in entrants)
        if along is None:
            continue
        values = [score.values for _, score in entrants]
        attribute = next(name for name in values[0] if len({condition[name] for condition in values}) > 1)
        points = [
            Requested(requested=x, entrant=name, achieved=means[name])
            for x, (name, _) in sorted(zip(along, entrants, strict=True), key=lambda entry: entry[0])
        ]
        known = [(point.requested, point.achieved.value) for point in points if point.achieved.value is not None]
        rho = spearman([x for x, _ in known], [y for _, y in known])
        curves.append(RewardCurve(model=model, attribute=attribute, guidance=guidance, points=points, spearman=rho))
    return curves


def _sum(data: EvaluationData, normaliser: Normaliser, facts: Sequence[RewardFacts]) -> RewardSum:
    """The sum in z units of the labelled sums: what the policies' own data had."""
    total = sum(
        part.weight * (grid - part.mean) / part.sd
        for part, grid in zip(normaliser.parts, _grids(data, facts), strict=True)
    )
    z = (np.asarray(total) - normaliser.mean) / normaliser.sd
    means = divide(np.nansum(z, axis=2), np.isfinite(z).sum(axis=2))
    columns = np.flatnonzero(np.isfinite(means).any(axis=0))
    comparison = compare_scores(means[:, columns], names_of(data, columns), seed=data.seed)
    return RewardSum(
        name=normaliser.reward_source,
        parts=normaliser.parts,
        trained=[],
        comparison=comparison,
        curves=reward_curves(data, comparison),
    )


def _grids(data: EvaluationData, facts: Sequence[RewardFacts]) -> list[Floats]:
    width = 1 + max(int(fact.sample.max(initial=0)) for fact in facts)
    return [reward_grid(data, fact, width) for fact in facts]
