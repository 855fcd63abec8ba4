"""Rank correlations of plain points, and of two sources' mean scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import ArrayLike

from steerboard_contracts.report.correlations import Correlations
from steerboard_statistics.bootstrap import Floats, divide
from steerboard_statistics.ranks import without_noise


def rank_correlation(x: ArrayLike, y: ArrayLike) -> tuple[float | None, float | None]:
    """Spearman's rho and Kendall's tau-b of points x, y (n,); a NaN drops its point.

    None for fewer than two points or a constant side.
    """
    points = np.column_stack([without_noise(x), without_noise(y)])
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) < 2:
        return None, None
    rho, tau = (
        spearman_rows(points[None, :, 0], points[None, :, 1]),
        kendall_rows(points[None, :, 0], points[None, :, 1]),
    )
    return _finite(rho[0]), _finite(tau[0])


def spearman(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Rank correlation, ties at their mean rank. None for fewer than two points or a constant side."""
    return rank_correlation(xs, ys)[0]


def spearman_rows(x: Floats, y: Floats) -> Floats:
    """Spearman's rho of each row: x, y (rows, n) without NaN -> (rows,), NaN where a side is constant."""
    a, b = scipy.stats.rankdata(x, axis=1), scipy.stats.rankdata(y, axis=1)
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    return divide((a * b).sum(axis=1), np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1)))


def kendall_rows(x: Floats, y: Floats) -> Floats:
    """Kendall's tau-b of each row: x, y (rows, n) without NaN -> (rows,), NaN where a side is constant."""
    first, second = np.triu_indices(x.shape[1], 1)
    a, b = np.sign(x[:, first] - x[:, second]), np.sign(y[:, first] - y[:, second])
    return divide((a * b).sum(axis=1), np.sqrt((a != 0).sum(axis=1) * (b != 0).sum(axis=1)))


def pearson(x: ArrayLike, y: ArrayLike) -> float | None:
    """Pearson's r of points x, y (n,); a NaN drops its point. None for fewer than two points or a constant side."""
    points = np.column_stack([np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)])
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) < 2:
        return None
    scale = np.abs(points).max(axis=0)
    points = points - points.mean(axis=0)
    spread = np.sqrt((points**2).sum(axis=0))
    # A spread of rounding errors is none.
    if not (spread > 1e-12 * scale).all():
        return None
    a, b = points[:, 0] / spread[0], points[:, 1] / spread[1]
    return min(max(float(a @ b), -1.0), 1.0)


def correlations(names: Sequence[str], values: Sequence[ArrayLike]) -> Correlations:
    """Correlations of every two of `values`, each (n,), over the points at which all of them are finite."""
    points = np.column_stack([np.asarray(series, dtype=np.float64) for series in values])
    points = points[np.isfinite(points).all(axis=1)]
    # Equal up to rounding is a tie.
    ranks = np.column_stack([scipy.stats.rankdata(without_noise(column)) for column in points.T])

    def matrix(columns: Floats) -> list[list[float | None]]:
        return [[pearson(column, other) for other in columns.T] for column in columns.T]

    return Correlations(names=list(names), n=len(points), pearson=matrix(points), spearman=matrix(ranks))


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
