"""The curvature of a likelihood with a sparse design, and Newton's directions in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from steerboard_statistics.benchmarks.battles import Floats, Ints

# Up to so many columns a matrix is solved directly; beyond, conjugate gradients are faster than factors of it.
_DENSE = 100
# Conjugate gradients need more steps only where most models meet a few others; such a design has sparse factors.
_MOST_STEPS = 60

Condition = Callable[[Floats], Floats]
"""An approximate inverse, as a function of a vector (columns,)."""


@dataclass(frozen=True)
class Curvature:
    """design' diag(curve) design + ridge, for many curves of one design.

    `products`, sparse (entries, rows): what each row of the design adds to each entry, times its curve. An entry of the
    upper triangle is given once. `upper`, `lower`: the places of an entry and of its mirror image in the matrix, which
    is dense of few columns and otherwise the values of a sparse one.
    """

    size: int
    ridge: float
    products: Any
    upper: Ints
    lower: Ints
    diagonal: Ints
    pattern: Any

    @classmethod
    def of(cls, design: Any, ridge: float) -> Curvature:
        size = design.shape[1]
        row, left, right = _pairs_within_rows(design.indptr)
        i, j = design.indices[left].astype(np.int64), design.indices[right].astype(np.int64)
        keys, entry = np.unique(np.minimum(i, j) * size + np.maximum(i, j), return_inverse=True)
        values = design.data[left] * design.data[right]
        products = scipy.sparse.csr_array((values, (entry.reshape(-1), row)), shape=(len(keys), design.shape[0]))
        i, j = np.divmod(keys, size)
        if size <= _DENSE:
            return cls(size, ridge, products, keys, j * size + i, np.arange(size) * (size + 1), None)
        every = np.arange(size)
        cells = np.unique(np.concatenate([keys, j * size + i, every * (size + 1)]))
        starts = np.searchsorted(cells // size, np.arange(size + 1))
        pattern = (cells % size).astype(np.int32), starts.astype(np.int32)
        upper, lower, diagonal = (np.searchsorted(cells, wanted) for wanted in (keys, j * size + i, every * (size + 1)))
        return cls(size, ridge, products, upper, lower, diagonal, pattern)

    def matrix(self, curve: Floats) -> Any:
        """Symmetric (columns, columns); curve (rows,)."""
        entries = self.products @ curve
        values = np.zeros(self.size**2 if self.pattern is None else len(self.pattern[0]))
        values[self.upper] = entries
        values[self.lower] = entries
        values[self.diagonal] += self.ridge
        if self.pattern is None:
            return values.reshape(self.size, self.size)
        return scipy.sparse.csr_array((values, *self.pattern), shape=(self.size, self.size))


def _pairs_within_rows(starts: Ints) -> tuple[Ints, Ints, Ints]:
    """(row, place, place) of each unordered pair of stored values in a row, a value with itself included."""
    rows, lefts, rights = [], [], []
    counts = np.diff(starts)
    for width in np.unique(counts):
        row = np.flatnonzero(counts == width)
        for left in range(width):
            for right in range(left, width):
                rows.append(row)
                lefts.append(starts[row] + left)
                rights.append(starts[row] + right)
    return np.concatenate(rows), np.concatenate(lefts), np.concatenate(rights)


def direction(matrix: Any, gradient: Floats, share: float, condition: Condition | None = None) -> Floats:
    """What `matrix` times it is the gradient, exactly or up to this share of the gradient's norm."""
    if not scipy.sparse.issparse(matrix):
        return np.asarray(np.linalg.solve(matrix, gradient))
    solved = conjugate_gradients(matrix, gradient, share, condition)
    return factors(matrix)(gradient) if solved is None else solved


def conjugate_gradients(
    matrix: Any, gradient: Floats, share: float, condition: Condition | None = None
) -> Floats | None:
    """Returns None where they need too many steps."""
    if condition is None:
        diagonal = matrix.diagonal()

        def condition(of: Floats) -> Floats:
            return np.asarray(of / diagonal)

    solution, residual = np.zeros_like(gradient), gradient.copy()
    enough = share * float(np.linalg.norm(gradient))
    along, before = np.zeros_like(gradient), 1.0
    for step in range(_MOST_STEPS):
        if float(np.linalg.norm(residual)) <= enough:
            return solution
        conditioned = condition(residual)
        now = float(residual @ conditioned)
        along = conditioned + (now / before if step else 0.0) * along
        image = matrix @ along
        size = now / float(along @ image)
        solution += size * along
        residual -= size * image
        before = now
    return None


def factors(matrix: Any) -> Condition:
    """The inverse of a sparse matrix, by its factors."""
    made = scipy.sparse.linalg.splu(
        matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    return lambda of: np.asarray(made.solve(of))
