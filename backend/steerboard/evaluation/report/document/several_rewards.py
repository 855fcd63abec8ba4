"""Several rewards together, and the distance from the model that the evaluation names, in a document."""

from __future__ import annotations

from collections.abc import Iterator

from steerboard.evaluation.report.document.cells import NONE, figure
from steerboard.sharing.blocks import Block, Cell, Fold, Grid
from steerboard_contracts.report.correlations import Correlations, Matrix
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.sections.frontier import BestOfNFrontier
from steerboard_contracts.report.sections.rewards import RewardCurve

_KINDS = {"estimate": "", "same": "the model itself", "bound": "an upper bound"}


def several_rewards(report: EvaluationReport) -> Iterator[Fold]:
    """How each reward follows what is asked for, sums of rewards, and how rewards go together."""
    blocks: list[Block] = [
        _curve(reward.reward_model, reward.units, curve) for reward in report.rewards for curve in reward.curves
    ]
    for total in report.reward_sums:
        rows = tuple((Cell(row.entrant), figure(row.mean)) for row in total.comparison.scores)
        blocks.append(Grid(f"Sum of rewards {total.name} (z)", ("Entrant", "Mean"), rows))
        blocks += [_curve(total.name, "z", curve) for curve in total.curves]
    if report.reward_correlations is not None:
        blocks += _correlations(report.reward_correlations)
    if blocks:
        words = "Each reward along what is asked for, sums of rewards, and how the rewards go together."
        yield Fold("Rewards together", words, tuple(blocks))


def _curve(reward: str, units: str, curve: RewardCurve) -> Grid:
    rho = "" if curve.spearman is None else f"Spearman {curve.spearman:.2f} over the means."
    rows = tuple((Cell(f"{point.requested:g}", point.entrant), figure(point.achieved)) for point in curve.points)
    model = curve.model if curve.guidance == 1 else f"{curve.model}, guidance {curve.guidance:g}"
    return Grid(f"{model}: {reward} by {curve.attribute}", ("Asked for", f"Mean ({units})"), rows, note=rho)


def _correlations(correlations: Correlations) -> Iterator[Grid]:
    for title, matrix in (("Pearson's r", correlations.pearson), ("Spearman's rho", correlations.spearman)):
        note = f"Over {correlations.n} answers that all of them scored."
        yield Grid(f"{title} of rewards", ("Reward", *correlations.names), _rows(correlations.names, matrix), note=note)


def _rows(names: list[str], matrix: Matrix) -> tuple[tuple[Cell, ...], ...]:
    def cell(value: float | None) -> Cell:
        return Cell(NONE) if value is None else Cell(f"{value:.2f}", shade=(1 + value) / 2)

    return tuple((Cell(name), *map(cell, row)) for name, row in zip(names, matrix, strict=True))


def distances(report: EvaluationReport) -> Iterator[Fold]:
    """KL of every entrant to the model, and the best of n of its own answers."""
    if report.frontier is None:
        return
    frontier = report.frontier
    rows = tuple(
        (
            Cell(entrant.entrant, f"No estimate: {entrant.why}" if entrant.why else _KINDS[entrant.kind]),
            figure(entrant.kl),
        )
        for entrant in frontier.entrants
    )
    blocks = (
        Grid(f"KL to {frontier.kl_to}", ("Entrant", "Nats per answer"), rows),
        *map(_best_of_n, frontier.best_of_n),
    )
    yield Fold("Distance", f"How far the entrants are from {frontier.kl_to}.", blocks)


def _best_of_n(curve: BestOfNFrontier) -> Grid:
    points = zip(curve.n, curve.kl, curve.reward, strict=True)
    rows = tuple((Cell(str(n)), Cell(f"{kl:.2f}"), figure(reward)) for n, kl, reward in points)
    title = f"Best of n of {curve.entrant} by {curve.reward_model}"
    return Grid(title, ("n", "KL at most, nats", "Mean reward"), rows, note="Chosen by this reward itself.")
