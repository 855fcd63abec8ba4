"""Newton's directions in a sparse likelihood against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from steerboard_statistics.benchmarks import curvature
from steerboard_statistics.benchmarks.curvature import Curvature, conjugate_gradients, direction, factors


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.mark.parametrize("columns", [30, 140])
def test_the_matrix_is_the_weighted_product_of_the_design(random: np.random.Generator, columns: int) -> None:
    dense = random.normal(size=(500, columns)) * (random.random((500, columns)) < 0.03)
    made = Curvature.of(scipy.sparse.csr_array(dense), ridge=0.5)
    for _ in range(2):
        curve = random.random(500)
        matrix = made.matrix(curve)
        assert scipy.sparse.issparse(matrix) == (columns > curvature._DENSE)
        whole = matrix.toarray() if scipy.sparse.issparse(matrix) else matrix
        assert whole == pytest.approx((dense * curve[:, None]).T @ dense + 0.5 * np.eye(columns))


def test_a_direction_solves_a_matrix_that_conjugate_gradients_are_slow_for(random: np.random.Generator) -> None:
    """A path of 2,000 columns: each step of conjugate gradients reaches one column further."""
    size = 2000
    path = scipy.sparse.diags_array(
        [-np.ones(size - 1), 2.0001 * np.ones(size), -np.ones(size - 1)], offsets=[-1, 0, 1]
    )
    matrix, wanted = scipy.sparse.csr_array(path), random.normal(size=size).cumsum()
    gradient = matrix @ wanted
    assert conjugate_gradients(matrix, gradient, 1e-8) is None
    assert direction(matrix, gradient, 1e-8) == pytest.approx(wanted, abs=1e-6)
    similar = factors(matrix + scipy.sparse.diags_array(random.random(size) * 1e-4))
    assert conjugate_gradients(matrix, gradient, 1e-10, similar) == pytest.approx(wanted, abs=1e-4)
