"""Whatever happens to a file of battles, its leaderboard is right, or marked invalid, or refused."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import example, given, settings

from figures.figures_runner import write
from figures.mutations import CHANGES, MOST, Change, Row, broken_share, changed, latest, mutated, together
from steerboard_figures.judgment_figures import Options, figures

MODELS = "abc"
SIDES = (("a", "b"), ("b", "a"))
# Each has a thousand draws for its intervals.
rated = settings(mutated, max_examples=mutated.max_examples // 4 + 3)
VALUES = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5}


def battles(n: int, **more: Any) -> list[Row]:
    draw = random.Random(4)
    rows = []
    for number in range(n):
        one, other = draw.sample(MODELS, 2)
        said = draw.choice(["model_a", "model_b", "tie", "model_a" if one < other else "model_b"])
        texts = {
            f"conversation_{side}": "\n".join(["word " * draw.randint(1, 30)] + ["- item"] * draw.randint(0, 3))
            for side in "ab"
        }
        rows.append({"id": number, "tstamp": number, "model_a": one, "model_b": other, "winner": said, **texts})
    return rows


def swap(row: Row) -> Row:
    turned = {"model_a": "model_b", "model_b": "model_a"}
    sides = {f"{name}_{side}": row[f"{name}_{other}"] for name in ("model", "conversation") for side, other in SIDES}
    return {**row, **sides, "winner": turned.get(row["winner"], row["winner"])}


def share_of(bad: int, good: int) -> float:
    return bad / (bad + good)


@given(CHANGES)
@example([])
@rated
def test_ratings_and_matrix(tmp_path: Path, changes: list[Change]) -> None:
    rows = changed(battles(240), changes, lambda row: {**row, "winner": None}, swap)
    if not any(isinstance(row, dict) and row["winner"] for row in rows):
        return
    computed = figures([write(tmp_path / "a.jsonl", *rows)], "battles", Options())
    silent = [row for row in rows if isinstance(row, dict) and row["winner"] is None]
    kept = latest([row for row in rows if isinstance(row, dict) and row["winner"]], lambda row: row["id"])

    def lost(name: str | None) -> bool:
        bad, n = (
            sum(name in (None, row["model_a"], row["model_b"]) for row in some) for some in (silent, kept.values())
        )
        return bool(n) and together(share_of(bad, n), broken_share(rows)) > MOST

    if lost(None):
        assert (computed["valid"], computed["models"], computed["matrix"]) == (False, None, None)
        return
    names = {row[side] for row in kept.values() for side in ("model_a", "model_b")}
    invalid = {name for name in names if lost(name)}
    used = [row for row in kept.values() if not invalid & {row["model_a"], row["model_b"]}]
    shares: dict[tuple[str, str], list[float]] = {}
    for row in used:
        sides = row["model_a"], row["model_b"]
        shares.setdefault(sides, []).append(VALUES[row["winner"]])
        shares.setdefault(sides[::-1], []).append(1 - VALUES[row["winner"]])
    silent_of = Counter(frozenset((row["model_a"], row["model_b"])) for row in silent)
    lost_pairs = {(a, b) for (a, b), mine in shares.items() if share_of(silent_of[frozenset((a, b))], len(mine)) > MOST}
    assert computed["valid"] == (not invalid and not lost_pairs)
    wanted = {key: None if key in lost_pairs else pytest.approx(sum(mine) / len(mine)) for key, mine in shares.items()}
    assert {(a, b): value for a, of in computed["matrix"].items() for b, value in of.items()} == wanted
    assert all(model["rating"] is None for model in computed["models"] if model["model"] in invalid)
    rated = {model["model"]: model for model in computed["models"] if model["rating"] is not None}
    if all(0 < sum(mine) < len(mine) for mine in shares.values()):
        assert set(rated) == {name for pair in shares for name in pair}
    ratings, _ = likeliest(used, sorted(rated), [])
    elo = elo_of(used)
    for name, model in rated.items():
        assert model["rating"] == pytest.approx(ratings[name], abs=0.05)
        assert model["elo"] == pytest.approx(elo[name])
        if model["low"] is not None:
            assert model["low"] < model["rating"] < model["high"]


@given(CHANGES)
@example([("swap", 0.2, 1), ("silence", 0.03, 2)])
@rated
def test_ratings_with_style_controlled(tmp_path: Path, changes: list[Change]) -> None:
    rows = changed(battles(120), changes, lambda row: {**row, "conversation_a": None}, swap)
    if not any(isinstance(row, dict) for row in rows):
        return
    computed = figures([write(tmp_path / "a.jsonl", *rows)], "battles", Options())
    kept = list(latest(rows, lambda row: row["id"]).values())
    known = [row for row in kept if row["conversation_a"] and row["conversation_b"]]
    styled = computed["style_controlled"]
    if styled is None:
        assert not computed["valid"] or not known
        return
    assert broken_share(rows) <= MOST
    if len(kept) - len(known) > MOST * len(kept):
        assert (styled["models"], "no style that can be read" in styled["why"]) == ([], True)
        return
    if not styled["models"]:
        assert "no two models" in styled["why"]
        return
    rated = {model["model"]: model["rating"] for model in styled["models"]}
    ratings, coefficients = likeliest(known, sorted(rated), ["bold", "headers", "length", "lists"])
    assert rated.keys() == ratings.keys()
    if max(rated.values()) > 1500:
        return  # a model that hardly ever loses: the likelihood is nearly flat
    assert rated == pytest.approx(ratings, abs=0.5)
    assert styled["coefficients"] == pytest.approx(coefficients, abs=0.01)


def likeliest(rows: list[Row], names: list[str], features: list[str]) -> tuple[dict[str, float], dict[str, float]]:
    """(ratings, coefficients of style) by a general optimiser, with the same tiny ridge that makes them unique."""
    rows = [row for row in rows if row["model_a"] in names and row["model_b"] in names]
    if not rows:
        return {}, {}
    models = np.array([[(row["model_a"] == name) - (row["model_b"] == name) for name in names] for row in rows], float)
    styles = np.array([[difference(row, feature) for feature in features] for row in rows]).reshape(len(rows), -1)
    spread = styles.std(axis=0)
    design = np.hstack([models, styles / np.where(spread > 0, spread, 1)])
    values = np.array([VALUES[row["winner"]] for row in rows])

    def loss(at: Any) -> tuple[float, Any]:
        z = design @ at
        p = scipy.special.expit(z)
        total = (np.logaddexp(0, z) - values * z).sum() + 0.5e-6 * (at**2).sum()
        return total, design.T @ (p - values) + 1e-6 * at

    at = scipy.optimize.minimize(loss, np.zeros(design.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-7}).x
    of_models = at[: len(names)]
    ratings = 1000 + (of_models - of_models.mean()) * 400 / np.log(10)
    return (
        dict(zip(names, ratings.tolist(), strict=True)),
        dict(zip(features, at[len(names) :].tolist(), strict=True)),
    )


def difference(row: Row, feature: str) -> float:
    mine, theirs = (
        {
            "length": len(row[f"conversation_{side}"]),
            "lists": row[f"conversation_{side}"].count("- item"),
        }.get(feature, 0)
        for side in "ab"
    )
    return (mine - theirs) / (mine + theirs) if mine + theirs else 0.0


def elo_of(rows: list[Row]) -> dict[str, float]:
    rating = {name: 1000.0 for row in rows for name in (row["model_a"], row["model_b"])}
    for row in sorted(rows, key=lambda row: row["tstamp"]):
        a, b = row["model_a"], row["model_b"]
        gained = 4 * (VALUES[row["winner"]] - 1 / (1 + 10 ** ((rating[b] - rating[a]) / 400)))
        rating[a] += gained
        rating[b] -= gained
    return rating
