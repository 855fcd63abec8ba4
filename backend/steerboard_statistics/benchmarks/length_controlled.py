"""AlpacaEval's length-controlled win rate (Dubois et al., arXiv 2404.04475; alpaca_eval's metrics/glm_winrate.py).

logit(p) = w1 tanh(d / sd(d)) + w2 difficulty + w3, with d = len_1 - len_2 in characters. len_1 is of output_1, the
baseline's, and len_2 of output_2, the model's, so the published w1 are negative: the gamed rows and the published
weights have that sign. The controlled win rate is the mean of sigma(w2 difficulty + w3): what is left when both answers
are equally long.

Departures from the original: `difficulty` and the gamed baselines may be absent, for prompts other than its 805 (its
`length_controlled_minimal`), and where there are fewer than 805 rows, difficulty is looked up by the true position of
a prompt, while the original numbers the rows that there are. On few rows cross-validation may choose a penalty under
which nothing is left of w3, and the rate would be 50 whatever the rows say: these are fitted without one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

Vector = NDArray[np.float64]

PROMPTS = 805
# scikit-learn's grid of `Cs=10`, logspace(-4, 4). The published fits used the sixth to the eighth.
GRID = tuple(float(c) for c in np.logspace(-4, 4, 10))
PUBLISHED_GRID = GRID[5:8]
_FOLDS = 5
_SEED = 123
# Half of the original's lambda of 0.2, because there are two gamed baselines.
_GAMED_WEIGHT = 0.1
_SMALLEST = 1e-15
# In percent: predictions that are all the same differ by so much in rounding.
_ROUNDING = 1e-9
_STEPS = 50
_NOTHING = 1e-6
# Beyond this a weight is that of a probability of 0 or 1.
_FARTHEST = 20.0


class CannotFit(ValueError):
    """The rows do not determine the regression; the message explains why."""


@dataclass(frozen=True, slots=True)
class Weights:
    """w1 of tanh(d / sd(d)), w2 of the difficulty (0 without difficulties), w3 of the model itself."""

    length: float
    difficulty: float
    model: float


@dataclass(frozen=True, slots=True)
class Gamed:
    """Rows of baselines that were made verbose or concise on purpose; they have a zero in the column of w3.

    `tanh_length`: tanh(std_delta_len); `probability`: p of each row.
    """

    tanh_length: Vector
    difficulty: Vector
    probability: Vector


@dataclass(frozen=True, slots=True)
class Fit:
    """`win_rate` in percent over all rows, also those without a preference; `c`: inverse strength of the L1 penalty,
    None where there was none; `n` rows with a preference were fitted."""

    win_rate: float
    weights: Weights
    c: float | None
    n: int


def win_rate(weights: Weights, difficulty: Sequence[float] | Vector) -> float:
    """100 mean sigma(w2 difficulty + w3), in percent. `difficulty` has one value for each row of the evaluation."""
    return float(_predicted(weights, difficulty).mean())


def standard_error(weights: Weights, difficulty: Sequence[float] | Vector) -> float | None:
    """`lc_standard_error` of the published leaderboards: sd(ddof 1) / sqrt(n) of what is predicted for each row, in
    percent. It is 0 without difficulties, which is not certainty, so then there is none; nor for one row."""
    predicted = _predicted(weights, difficulty)
    error = float(predicted.std(ddof=1)) / math.sqrt(len(predicted)) if len(predicted) > 1 else 0.0
    return error if error > _ROUNDING else None


def extreme_change(win_rate: float, controlled: float) -> bool:
    """Whether length control moves a rate by more than AlpacaEval expects of a fit that works: over 10 points, and over
    a quarter of the way to 0 or to 100."""
    down = controlled < min(win_rate * 3 / 4, win_rate - 10)
    return down or controlled > max(win_rate + (100 - win_rate) / 4, win_rate + 10)


def _predicted(weights: Weights, difficulty: Sequence[float] | Vector) -> Vector:
    """sigma(w2 difficulty + w3) of each row, in percent."""
    return np.asarray(100 * scipy.special.expit(weights.difficulty * np.asarray(difficulty, float) + weights.model))


def length_feature(len_1: Sequence[float], len_2: Sequence[float]) -> Vector:
    """tanh(d / sd(d)), sd with ddof 1 over all rows, not centred. Raises `CannotFit` where sd(d) is 0 or undefined."""
    d = np.asarray(len_1, float) - np.asarray(len_2, float)
    sd = float(d.std(ddof=1)) if len(d) > 1 else 0.0
    if not sd > 0:
        raise CannotFit("the difference in length is the same in every row")
    return np.asarray(np.tanh(d / sd))


def fit(
    probability: Sequence[float | None],
    len_1: Sequence[float],
    len_2: Sequence[float],
    difficulty: Sequence[float] | None = None,
    gamed: Gamed | None = None,
    *,
    c: float | None = None,
) -> Fit:
    """Fit one model's rows. `probability`: p of each row, None where the judge gave none; lengths in characters, len_1
    the baseline's and len_2 the model's; `difficulty`: of each row's prompt (`difficulties[position]`), or None.

    `c` None chooses it by cross-validation as the original does: GroupKFold(5) by row, log-loss; where this leaves
    nothing of w3, there is no penalty. The order of the rows decides the folds: with difficulties it is the given one,
    without it is by content. Raises `CannotFit`.
    """
    p = np.array([np.nan if value is None else value for value in probability], float)
    used = ~np.isnan(p)
    hard = np.zeros(len(p)) if difficulty is None else np.asarray(difficulty, float)
    if not len(p) == len(len_1) == len(len_2) == len(hard):
        raise ValueError("every row needs a probability, two lengths and, if there are any, a difficulty")
    features = np.column_stack([length_feature(len_1, len_2), hard, np.ones(len(p))])[used]
    if difficulty is None:
        # No benchmark orders these rows, and the order of a file decides no fold.
        by_content = np.lexsort((p[used], np.asarray(len_2, float)[used], np.asarray(len_1, float)[used]))
        features, p = features[by_content], p[used][by_content]
        used = np.ones(len(p), bool)
    rows, target, weight = features, p[used], np.ones(int(used.sum()))
    if gamed is not None:
        others = np.column_stack([gamed.tanh_length, gamed.difficulty, np.zeros(len(gamed.probability))])
        # The order decides the folds, and with them C.
        rows = np.vstack([others, features])
        target = np.concatenate([gamed.probability, target])
        weight = np.concatenate([np.full(len(others), _GAMED_WEIGHT), weight])
    if used.sum() < 2 * _FOLDS:
        raise CannotFit(f"{int(used.sum())} rows with a preference are too few")
    columns = [0, 2] if difficulty is None else [0, 1, 2]
    model = _regression(rows[:, columns], target, weight, c)
    fitted: Vector = np.ravel(model.coef_)
    strength: float | None = float(np.ravel(model.C_)[0]) if c is None else c
    if c is None and not fitted[-1]:
        whole = _unpenalised(rows[:, columns], target, weight)
        # The rows may be won as often as lost, and then the penalty took nothing away.
        if abs(whole[-1]) > _NOTHING:
            fitted, strength = whole, None
    coefficients = dict(zip(columns, fitted.tolist(), strict=True))
    weights = Weights(coefficients[0], coefficients.get(1, 0.0), coefficients[2])
    return Fit(win_rate(weights, hard), weights, strength, int(used.sum()))


def closest_fit(
    published: Weights,
    probability: Sequence[float | None],
    len_1: Sequence[float],
    len_2: Sequence[float],
    difficulty: Sequence[float],
    gamed: Gamed,
) -> Fit:
    """The fit at that C of `PUBLISHED_GRID` whose weights are nearest to the published ones, by the largest distance
    of a weight: cross-validation on reconstructed data need not choose the C of the publication."""
    fits = [fit(probability, len_1, len_2, difficulty, gamed, c=c) for c in PUBLISHED_GRID]
    return min(fits, key=lambda weights: distance(weights.weights, published))


def distance(a: Weights, b: Weights) -> float:
    """The largest absolute difference of a weight."""
    return max(abs(a.length - b.length), abs(a.difficulty - b.difficulty), abs(a.model - b.model))


def _regression(rows: Vector, target: Vector, weight: Vector, c: float | None) -> Any:
    """L1 logistic regression without intercept; each row is there twice, as 1 with weight p and as 0 with 1 - p."""
    # Imported here: it takes longer to load than everything else of this package.
    from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
    from sklearn.model_selection import GroupKFold

    n = len(target)
    x = np.vstack([rows, rows])
    y = np.concatenate([np.ones(n), np.zeros(n)])
    weights = np.concatenate([weight * target, weight * (1 - target)])
    common: dict[str, Any] = {"solver": "liblinear", "fit_intercept": False, "random_state": _SEED}
    if not _both(y, weights):
        raise CannotFit("all rows say the same")
    if c is not None:
        return LogisticRegression(C=c, l1_ratio=1, **common).fit(x, y, sample_weight=weights)
    groups = np.concatenate([np.arange(n), np.arange(n)])
    folds = list(GroupKFold(_FOLDS).split(x, y, groups))
    if any(not _both(y[train], weights[train]) for train, _ in folds):
        raise CannotFit("all or nearly all rows say the same")
    model = LogisticRegressionCV(
        Cs=list(GRID), l1_ratios=(1,), cv=folds, scoring=_score, refit=True, use_legacy_attributes=False, **common
    )
    return model.fit(x, y, sample_weight=weights)


def _unpenalised(rows: Vector, target: Vector, weight: Vector) -> Vector:
    """The maximum of the likelihood, by Newton's method. Raises `CannotFit` where it has none."""
    coefficients = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        p = scipy.special.expit(rows @ coefficients)
        hessian = (rows * (weight * p * (1 - p))[:, None]).T @ rows
        step = np.linalg.lstsq(hessian, rows.T @ (weight * (target - p)), rcond=None)[0]
        coefficients += step
        if np.abs(coefficients).max() > _FARTHEST:
            break
        if np.abs(step).max() < 1e-10:
            return coefficients
    raise CannotFit("cross-validation leaves nothing of the model's weight, and without a penalty there is no maximum")


def _both(y: Vector, weights: Vector) -> bool:
    """Whether both answers have some weight: liblinear drops rows without."""
    return bool(weights[y == 1].sum() > 0 and weights[y == 0].sum() > 0)


def _score(model: Any, x: Vector, y: Vector, sample_weight: Vector) -> float:
    """Minus the log-loss of p, over the rows of a fold; dividing by the weights instead would move C now and then."""
    predicted = np.clip(model.predict_proba(x)[:, 1], _SMALLEST, 1 - _SMALLEST)
    loss = -sample_weight * np.where(y == 1, np.log(predicted), np.log1p(-predicted))
    return -math.fsum(loss) / (len(y) / 2)
