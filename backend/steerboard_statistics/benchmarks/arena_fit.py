"""The likelihood of battles between many models: a sparse design of one row for each kind of pair, its maximum, and the
maxima of draws of battles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from steerboard_statistics.benchmarks.battles import Floats, Ints, Kinds, PairedComparison, kinds_of
from steerboard_statistics.benchmarks.curvature import Condition, Curvature, conjugate_gradients, direction, factors
from steerboard_statistics.bradley_terry import comparable

_STEPS = 60
# In log-odds of a pair.
_LONGEST = 2.0
# A feature that separates wins from losses has no maximum without the ridge of all coefficients, and a far one with it.
_RIDGE = 1e-6
_FARTHEST = 15.0
_EXACT, _DRAWN = 1e-8, 1e-5
# Newton's first steps need no exact direction: the residual's share falls with the gradient, between these bounds.
_ROUGH, _FINE = 0.1, 1e-5


@dataclass(frozen=True)
class Beaten:
    """Who has beaten whom, for many weights of the same pairs: the edges of a graph, sorted by `winner` and `loser`
    (edges,), and the kind of pairs that each is of, `kinds` (edges,). A tie is an edge both ways."""

    models: int
    kinds: Ints
    winner: Ints
    loser: Ints

    @classmethod
    def by(cls, a: Ints, b: Ints, values: Floats, models: int) -> Beaten:
        """a, b, values (kinds of pairs,)."""
        won, lost = np.flatnonzero(values > 0), np.flatnonzero(values < 1)
        winner, loser = np.concatenate([a[won], b[lost]]), np.concatenate([b[won], a[lost]])
        order = np.lexsort((loser, winner))
        return cls(models, np.concatenate([won, lost])[order], winner[order], loser[order])

    def of(self, weights: Floats) -> Any:
        """The sparse graph (models, models) of those kinds of pairs whose weight is not 0; weights (kinds of pairs,).
        An edge may be there twice."""
        there = weights[self.kinds] > 0
        starts = np.searchsorted(self.winner[there], np.arange(self.models + 1))
        loser = self.loser[there]
        return scipy.sparse.csr_array((np.ones(len(loser)), loser, starts), shape=(self.models, self.models))


@dataclass(frozen=True)
class Design:
    """`rows`, sparse (kinds of pairs, models and features): +1 for a, -1 for b, and the standardised differences of the
    styles; `columns` is its transpose. `a`, `b` (kinds of pairs,): places of the models."""

    rows: Any
    columns: Any
    curvature: Curvature
    beaten: Beaten
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
    at = np.arange(len(first))
    signs = np.repeat([1.0, -1.0], len(first))
    rows = scipy.sparse.csr_array(
        (signs, (np.concatenate([at, at]), np.concatenate([a, b]))), shape=(len(first), len(names))
    )
    if features:
        rows = scipy.sparse.hstack([rows, scipy.sparse.csr_array(_styles(pairs, features))], format="csr")
    kinds = kinds_of(pairs, weight, kind.tolist(), values)
    curvature, beaten = Curvature.of(rows, _RIDGE), Beaten.by(a, b, values, len(names))
    return Design(rows, rows.T.tocsr(), curvature, beaten, a, b, len(names), kinds)


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


def fit(
    design: Design,
    weights: Floats,
    start: Floats | None = None,
    tolerance: float = _EXACT,
    condition: Condition | None = None,
) -> Floats:
    """Natural logarithms of the strengths with a mean of 0, then the style's coefficients, by Newton's method; weights
    (kinds of pairs,)."""
    parameters = np.zeros(design.rows.shape[1]) if start is None else start.copy()
    first = 0.0
    for _ in range(_STEPS):
        p = scipy.special.expit(design.rows @ parameters)
        gradient = design.columns @ (weights * (design.kinds.values - p)) - _RIDGE * parameters
        size = float(np.linalg.norm(gradient))
        first = first or size
        share = min(max(size / first, _FINE), _ROUGH) if first else _FINE
        step = direction(design.curvature.matrix(weights * p * (1 - p)), gradient, share, condition)
        # A longer step overshoots where one side nearly always wins.
        step *= _LONGEST / max(_LONGEST, float(np.abs((design.rows @ step)[weights > 0]).max(initial=0.0)))
        parameters += step
        coefficients = parameters[design.models :]
        np.clip(coefficients, -_FARTHEST, _FARTHEST, out=coefficients)
        if np.abs(step).max() < tolerance:
            break
    parameters[: design.models] -= parameters[: design.models].mean()
    return parameters


def drawn(design: Design, fitted: Floats, draws: int, seed: int) -> Floats:
    """Ratings (draws, models) of battles drawn with replacement, each with all of its pairs; `fitted`: of all battles.

    A draw rates the models that it joins by wins both ways, and puts their mean where it is in `fitted`; the others are
    NaN, because they have no finite rating there.
    """
    random = np.random.default_rng(seed)
    counts, ratings = design.kinds.counts, fitted[: design.models]
    total = int(counts.sum())
    made = np.full((draws, design.models), np.nan)
    condition = _condition(design, fitted)
    for draw in made:
        weights = design.kinds.weights(random.multinomial(total, counts / total).astype(float))
        members = comparable(design.beaten.of(weights))
        there = np.zeros(design.models, dtype=bool)
        there[members] = len(members) > 1
        start = fitted.copy()
        start[: design.models][~there] = 0.0
        weights *= there[design.a] & there[design.b]
        logs = fit(design, weights, start, _DRAWN, condition)[: design.models]
        if there.any():
            draw[there] = logs[there] + (ratings[there] - logs[there]).mean()
    return made


def _condition(design: Design, fitted: Floats) -> Condition | None:
    """The factors of the curvature at the maximum, which that of a draw is like; None where directions are found faster
    without."""
    p = scipy.special.expit(design.rows @ fitted)
    matrix = design.curvature.matrix(design.kinds.weights(design.kinds.counts) * p * (1 - p))
    if not scipy.sparse.issparse(matrix):
        return None
    gradient = design.columns @ (p - design.kinds.values)
    return None if conjugate_gradients(matrix, gradient, _FINE) is not None else factors(matrix)
