"""AlpacaEval: its leaderboard's figures, from its annotations; length-controlled from its weights, and refitted."""

from __future__ import annotations

import csv
import gzip
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from steerboard_statistics.benchmarks import alpaca_eval, length_controlled
from steerboard_statistics.benchmarks.length_controlled import CannotFit, Gamed, Weights


@dataclass(frozen=True)
class Model:
    name: str
    positions: list[int]
    preferences: list[float | None]
    len_1: list[float]
    len_2: list[float]
    published: dict[str, str]
    weights: Weights

    @property
    def probabilities(self) -> list[float | None]:
        return [alpaca_eval.probability(preference) for preference in self.preferences]


@dataclass(frozen=True)
class Benchmark:
    models: dict[str, Model]
    difficulty: list[float]
    gamed: Gamed

    def hard(self, model: Model) -> list[float]:
        return [self.difficulty[position] for position in model.positions]


@pytest.fixture(scope="module")
def benchmark(published: Path) -> Benchmark:
    folder = published / "alpaca_eval"

    def table(name: str) -> list[dict[str, str]]:
        with (folder / name).open() as file:
            return list(csv.DictReader(file))

    leaderboard = {row[""]: row for row in table("leaderboard.csv")}
    weights = {row[""]: Weights(*(float(v) for k, v in row.items() if k)) for row in table("glm_weights_published.csv")}
    rows: dict[str, list[dict[str, str]]] = {}
    with gzip.open(folder / "preferences_compact.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["model"], []).append(row)
    gamed = table("df_gamed_reconstructed.csv")
    return Benchmark(
        {
            name: Model(
                name,
                [int(row["row"]) for row in mine],
                [float(row["preference"]) if row["preference"] else None for row in mine],
                [float(row["len_1"]) for row in mine],
                [float(row["len_2"]) for row in mine],
                leaderboard[name],
                weights[name],
            )
            for name, mine in rows.items()
        },
        [float(row["instruction_difficulty"]) for row in table("instruction_difficulty_recovered.csv")],
        Gamed(
            np.tanh([float(row["std_delta_len"]) for row in gamed]),
            np.array([float(row["instruction_difficulty"]) for row in gamed]),
            np.array([float(row["preference"]) for row in gamed]),
        ),
    )


def test_win_rates_standard_errors_and_counts_equal_the_leaderboard(benchmark: Benchmark) -> None:
    assert len(benchmark.models) == 8
    for model in benchmark.models.values():
        ours, theirs = alpaca_eval.summary(model.preferences), model.published
        assert ours.win_rate == pytest.approx(float(theirs["win_rate"]), abs=1e-6), model.name
        assert ours.standard_error == pytest.approx(float(theirs["standard_error"]), abs=1e-6), model.name
        assert ours.discrete_win_rate == pytest.approx(float(theirs["discrete_win_rate"]), abs=1e-6), model.name
        counts = [ours.wins, ours.losses, ours.draws, ours.n]
        assert counts == [int(theirs[name]) for name in ("n_wins", "n_wins_base", "n_draws", "n_total")], model.name


def test_length_controlled_from_the_published_weights(benchmark: Benchmark) -> None:
    for model in benchmark.models.values():
        ours = length_controlled.win_rate(model.weights, benchmark.hard(model))
        assert ours == pytest.approx(float(model.published["length_controlled_winrate"]), abs=1e-6), model.name


def test_length_controlled_refitted_at_the_published_strength(benchmark: Benchmark) -> None:
    """The C of each publication is the one of the grid that gives its weights again, to a thousandth; no other does."""
    chosen = {}
    for model in benchmark.models.values():
        fit = length_controlled.closest_fit(
            model.weights, model.probabilities, model.len_1, model.len_2, benchmark.hard(model), benchmark.gamed
        )
        chosen[model.name] = round(fit.c, 2)
        assert fit.win_rate == pytest.approx(float(model.published["length_controlled_winrate"]), abs=0.01), model.name
        assert length_controlled.distance(fit.weights, model.weights) < 0.001, model.name
    assert chosen == {
        "FuseChat-Llama-3.1-8B-Instruct": 2.78,
        "claude-2": 2.78,
        "gpt-3.5-turbo-1106_verbose": 2.78,
        "gpt-3.5-turbo-1106_concise": 2.78,
        "vicuna-7b": 21.54,
        "alpaca-7b": 21.54,
        "phi-2-sft": 21.54,
        "chatglm2-6b": 21.54,
    }


def test_length_controlled_with_its_own_cross_validation(benchmark: Benchmark) -> None:
    for model in benchmark.models.values():
        fit = length_controlled.fit(
            model.probabilities, model.len_1, model.len_2, benchmark.hard(model), benchmark.gamed
        )
        assert fit.win_rate == pytest.approx(float(model.published["length_controlled_winrate"]), abs=0.16), model.name


def test_a_subset_keeps_the_difficulties_of_its_positions(benchmark: Benchmark) -> None:
    """Every other prompt: with the difficulties of their own positions the fit stays near that of all 805."""
    model = benchmark.models["claude-2"]
    even = list(range(0, 805, 2))

    def part(values: list[float]) -> list[float]:
        return [values[index] for index in even]

    hard = [benchmark.difficulty[model.positions[index]] for index in even]
    p = [model.probabilities[index] for index in even]
    whole = length_controlled.fit(
        model.probabilities, model.len_1, model.len_2, benchmark.hard(model), benchmark.gamed, c=2.78
    )
    right = length_controlled.fit(p, part(model.len_1), part(model.len_2), hard, benchmark.gamed, c=2.78)
    wrong = length_controlled.fit(
        p, part(model.len_1), part(model.len_2), benchmark.difficulty[: len(even)], benchmark.gamed, c=2.78
    )
    assert right.n == len(even)
    assert abs(right.win_rate - whole.win_rate) < 2
    assert right.weights.difficulty > 0.9
    assert wrong.weights.difficulty < 0.7


def test_rows_without_a_preference_are_predicted_but_not_fitted(benchmark: Benchmark) -> None:
    model = benchmark.models["vicuna-7b"]
    holes: list[float | None] = [None if i % 100 == 7 else p for i, p in enumerate(model.probabilities)]
    fit = length_controlled.fit(holes, model.len_1, model.len_2, benchmark.hard(model), benchmark.gamed, c=21.54)
    assert fit.n == 805 - 8
    assert fit.win_rate == pytest.approx(length_controlled.win_rate(fit.weights, benchmark.hard(model)), abs=1e-9)


def test_zero_is_a_draw_and_null_is_left_out() -> None:
    summary = alpaca_eval.summary([0, 1.5, 2, 1.9, 1.2, 1, None, math.nan])
    assert (summary.wins, summary.losses, summary.draws, summary.n, summary.nulls) == (2, 2, 2, 6, 2)
    p = [0.5, 0.5, 1.0, 0.9, 0.2, 0.0]
    mean = sum(p) / 6
    assert summary.win_rate == pytest.approx(100 * mean)
    spread = math.sqrt(sum((x - mean) ** 2 for x in p) / 5)
    assert summary.standard_error == pytest.approx(100 * spread / math.sqrt(6))
    assert summary.discrete_win_rate == pytest.approx(50)


def test_too_few_rows_have_no_figure() -> None:
    assert alpaca_eval.summary([None, None]).win_rate is None
    assert alpaca_eval.summary([1.7]).standard_error is None


@pytest.mark.parametrize("preference", [-1, 0.5, 2.01, math.inf])
def test_a_preference_out_of_range_is_refused(preference: float) -> None:
    with pytest.raises(ValueError, match="between 1 and 2"):
        alpaca_eval.probability(preference)


def test_other_prompts_are_fitted_without_difficulty() -> None:
    """Length explains everything here, so what is left is near 50%."""
    random = np.random.default_rng(5)
    len_1, len_2 = random.integers(100, 2000, (2, 400)).astype(float)
    d = len_1 - len_2
    p = 1 / (1 + np.exp(-2 * np.tanh(d / d.std(ddof=1))))
    fit = length_controlled.fit(list(p), list(len_1), list(len_2))
    assert fit.win_rate == pytest.approx(50, abs=0.5)
    assert fit.weights.length == pytest.approx(2, abs=0.1)
    assert fit.weights.difficulty == 0


def test_a_rate_of_few_rows_is_not_shrunk_to_50() -> None:
    """Cross-validation would leave nothing of the model's weight. Without a penalty it is where scipy has it."""
    random = np.random.default_rng(4)
    len_1, len_2 = random.integers(100, 2000, (2, 20)).astype(float)
    p = np.clip(random.normal(0.6, 0.3, 20), 0, 1)
    fit = length_controlled.fit(list(p), list(len_1), list(len_2))
    feature = length_controlled.length_feature(list(len_1), list(len_2))

    def loss(weights: Any) -> float:
        logits = weights[0] * feature + weights[1]
        return float((np.logaddexp(0, logits) - p * logits).sum())

    best = minimize(loss, np.zeros(2)).x
    assert fit.c is None
    assert (fit.weights.length, fit.weights.model) == pytest.approx(tuple(best), abs=1e-3)
    assert fit.win_rate == pytest.approx(100 / (1 + math.exp(-best[1])), abs=0.05)
    assert abs(fit.win_rate - 50) > 1


def test_predictions_that_differ_by_rounding_have_no_standard_error() -> None:
    assert length_controlled.standard_error(Weights(-1.0, 0.3, 0.7), [0.123456789] * 805) is None
    assert length_controlled.standard_error(Weights(-1.0, 0.0, 0.7), list(range(805))) is None


@pytest.mark.parametrize(
    ("probability", "len_1", "why"),
    [
        ([0.5] * 30, [10.0] * 30, "difference in length"),
        ([1.0] * 30, [float(i) for i in range(30)], "say the same"),
        ([0.3] * 5, [1.0, 2.0, 3.0, 4.0, 5.0], "too few"),
    ],
)
def test_what_cannot_be_fitted_says_why(probability: list[float], len_1: list[float], why: str) -> None:
    with pytest.raises(CannotFit, match=why):
        length_controlled.fit(probability, len_1, [0.0] * len(len_1))
