"""Rows that are learned without their score, for guidance to start from."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.methods.decision_transformer import DecisionTransformerConfig
from steerboard_workers.alignment.methods.decision_transformer import DecisionTransformer


@dataclass
class Graded:
    name: str = "graded"
    normaliser: None = None


def conditions(share: float, numbers: range = range(2000), split: str = "train", seed: int = 0) -> dict[int, str]:
    """What each row is asked for, by its number."""
    config = {"run": "train", "method": "decision_transformer", "drop_score": share, "seed": seed}
    method = DecisionTransformer(DecisionTransformerConfig.model_validate(config))
    rows = [
        {"row": n, "split": split, "prompt": "Hi", "response": "x", "reward": float(n % 7), "attributes": {}}
        for n in numbers
    ]
    method.select(rows, Graded())
    return {row["row"]: method.condition(row) or "" for row in rows}


def test_the_share_of_rows_without_a_score_is_the_one_asked_for() -> None:
    texts = conditions(0.25)
    assert sum(text == "" for text in texts.values()) / len(texts) == pytest.approx(0.25, abs=0.03)
    assert all(conditions(0.0).values())


def test_which_rows_are_dropped_depends_on_the_seed_and_on_no_other_row() -> None:
    dropped = {row for row, text in conditions(0.25).items() if not text}
    part = {row for row, text in conditions(0.25, range(500, 900)).items() if not text}
    assert part == {row for row in dropped if 500 <= row < 900}
    assert dropped != {row for row, text in conditions(0.25, seed=1).items() if not text}


def test_held_out_rows_keep_their_scores() -> None:
    assert all(conditions(0.9, split="held_out").values())


def test_a_policy_knows_the_share_that_it_learned_without_a_score() -> None:
    config = {"run": "train", "method": "decision_transformer", "drop_score": 0.1}
    method = DecisionTransformer(DecisionTransformerConfig.model_validate(config))
    rows = [{"row": n, "split": "train", "prompt": "Hi", "response": "x", "reward": float(n)} for n in range(4)]
    assert method.select(rows, Graded()).info["condition"].dropped == 0.1
    assert ConditionFormat.of_score().dropped == 0
