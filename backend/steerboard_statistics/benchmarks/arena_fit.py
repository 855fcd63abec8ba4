"""The likelihood of battles between many models: a design of one row for each kind of pair, which is sparse where there
are many models, its maximum, and the maxima of draws of battles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from steerboard_statistics.benchmarks.battles import Floats, Ints, Kinds, PairedComparison, kinds_of
from steerboard_statistics.bradley_terry import comparable

_STEPS = 60
_FARTHEST = 15.0
# The ridge of all coefficients: without it, a feature that separates wins from losses has no maximum.
_RIDGE = 1e-6
# Up to so many columns a matrix is solved directly; beyond, conjugate gradients are faster than factors of it.
_DENSE = 100
_EXACT, _DRAWN = 1e-8, 1e-5


@dataclass(frozen=True)
class Design:
    """`rows` (kinds of pairs, models and features): +1 for a, -1 for b, and the standardised differences of the styles;
    a `scipy.sparse` array of many columns. `a`, `b` (kinds of pairs,): places of the models."""

    rows: Any
    a: Ints
    b: Ints
    models: int
    kinds: Kinds


def features_of(pairs: Sequence[PairedComparison]) -> list[str]:
    return sorted({name for pair in pairs for side in pair.style or () for name in side})


def design_of(
    pairs: Sequence[PairedComparison], weight: Floats, names: Sequence[str], features: Sequence[str]
) -> Design:
    place = {name: index for index, name in enumerate(names)}
    table = np.array([(place[pair.a], place[pair.b], pair.value) for pair in pairs])
    kind = np.arange(len(pairs)) if features else _kinds(table)
    _, first = np.unique(kind, return_index=True)
    a, b, values = table[first, 0].astype(np.int64), table[first, 1].astype(np.int64), table[first, 2]
    size, at = len(names) + len(features), np.arange(len(first))
    signs = np.repeat([1.0, -1.0], len(first))
    rows = scipy.sparse.csr_array(
        (signs, (np.concatenate([at, at]), np.concatenate([a, b]))), shape=(len(first), len(names))
    )
    if features:
        rows = scipy.sparse.hstack([rows, scipy.sparse.csr_array(_styles(pairs, features))], format="csr")
    kinds = kinds_of(pairs, weight, kind.tolist(), values)
    return Design(rows if size > _DENSE else rows.toarray(), a, b, len(names), kinds)


def _kinds(table: Floats) -> Ints:
    """The kind of each pair (a, b, value). Their order, which decides what is drawn, is that of the rows of a dense
    design: -1 before 0 before 1, column after column."""
    a, b, value = table.T
    turned = b < a
    keys = np.column_stack([~turned, np.where(turned, b, -a), np.where(turned, -a, b), value])
    return np.asarray(np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1), dtype=np.int64)


def _styles(pairs: Sequence[PairedComparison], features: Sequence[str]) -> Floats:
    """(pairs, features). As lmarena: the difference over the sum, so that 100 more words of 200 weigh as much as 10 of
    20."""
    styles = np.zeros((len(pairs), len(features)))
    for row, pair in enumerate(pairs):
        for column, name in enumerate(features):
            left, right = (side.get(name, 0.0) for side in pair.style or ({}, {}))
            styles[row, column] = (left - right) / (left + right) if left + right else 0.0
    spread = styles.std(axis=0)
    return np.asarray(styles / np.where(spread > 0, spread, 1))


def fit(design: Design, weights: Floats, start: Floats | None = None, tolerance: float = _EXACT) -> Floats:
    """Natural logarithms of the strengths with a mean of 0, then the style's coefficients, by Newton's method; weights
    (kinds of pairs,)."""
    parameters = np.zeros(design.rows.shape[1]) if start is None else start.copy()
    for _ in range(_STEPS):
        p = scipy.special.expit(design.rows @ parameters)
        gradient = design.rows.T @ (weights * (design.kinds.values - p)) - _RIDGE * parameters
        step = np.clip(_newton(design.rows, weights * p * (1 - p), gradient), -2, 2)
        parameters = np.clip(parameters + step, -_FARTHEST, _FARTHEST)
        if np.abs(step).max() < tolerance:
            break
    parameters[: design.models] -= parameters[: design.models].mean()
    return parameters


def _newton(rows: Any, curve: Floats, gradient: Floats) -> Floats:
    """What (rows' curve rows + ridge) times it is the gradient."""
    if not scipy.sparse.issparse(rows):
        hessian = (rows * curve[:, None]).T @ rows + _RIDGE * np.eye(len(gradient))
        return np.asarray(np.linalg.solve(hessian, gradient))
    diagonal = (rows * rows).T @ curve + _RIDGE
    shape = (len(gradient), len(gradient))
    hessian = scipy.sparse.linalg.LinearOperator(
        shape, matvec=lambda of: rows.T @ (curve * (rows @ of)) + _RIDGE * of, dtype=np.float64
    )
    inverse = scipy.sparse.linalg.LinearOperator(shape, matvec=lambda of: of / diagonal, dtype=np.float64)
    step, _ = scipy.sparse.linalg.cg(hessian, gradient, rtol=1e-5, M=inverse)
    return np.asarray(step)


def drawn(design: Design, fitted: Floats, draws: int, seed: int) -> Floats:
    """Ratings (draws, models) of battles drawn with replacement, each with all of its pairs; `found`: of all battles.

    A draw rates the models that it joins by wins both ways, and puts their mean where it is in `found`; the others are
    NaN, because they have no finite rating there.
    """
    random = np.random.default_rng(seed)
    counts, ratings = design.kinds.counts, fitted[: design.models]
    total = int(counts.sum())
    made = np.full((draws, design.models), np.nan)
    for draw in made:
        weights = design.kinds.weights(random.multinomial(total, counts / total).astype(float))
        members = comparable(wins(design.a, design.b, design.kinds.values, weights, design.models))
        there = np.zeros(design.models, dtype=bool)
        there[members] = len(members) > 1
        logs = fit(design, weights * (there[design.a] & there[design.b]), fitted, _DRAWN)[: design.models]
        if there.any():
            draw[there] = logs[there] + (ratings[there] - logs[there]).mean()
    return made


def wins(a: Ints, b: Ints, values: Floats, weights: Floats, models: int) -> Any:
    """Sparse (models, models): the weight of wins of row over column, ties 1/2."""
    points = np.concatenate([weights * values, weights * (1 - values)])
    edges = np.concatenate([a, b]), np.concatenate([b, a])
    return scipy.sparse.csr_array((points, edges), shape=(models, models))
