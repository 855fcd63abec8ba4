"""Answers to one prompt come in the same optimiser step where the Decision Transformer is to contrast them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from steerboard_contracts.methods.decision_transformer import DecisionTransformerConfig
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.methods.decision_transformer import DecisionTransformer

PROMPTS = ["a film", [{"role": "user", "content": "a hotel"}], "a phone", [{"content": "a hotel", "role": "user"}]]


class Group:
    """What an example reads of a rendered group."""

    prompt, responses, leads = (1, 2), ((3, 4),), ()
    prompt_supervised = (False, False)
    truncated = False


class Context:
    """What a list of rows reads of a run."""

    def __init__(self, train: list[Example]) -> None:
        self.train, self.held_out = train, []


def prompts_in_order(contrast: bool, batch: int = 4, epochs: float = 2.0) -> list[list[str]]:
    """The prompts of the rows of each step; 16 rows of 3 prompts, one of them written in two ways."""
    given = {"run": "train", "method": "decision_transformer", "contrast": contrast, "batch": batch, "epochs": epochs}
    method = DecisionTransformer(DecisionTransformerConfig.model_validate(given))
    rows = [{"row": n, "split": "train", "prompt": PROMPTS[n % 4], "response": "x"} for n in range(16)]
    source = method.source(Context([method.example(row["row"], row, Group()) for row in rows]))
    name = {0: "film", 1: "hotel", 2: "phone", 3: "hotel"}
    return [[name[example.row % 4] for example in source.batch(step).examples] for step in range(source.steps)]


def test_answers_to_one_prompt_follow_each_other_in_every_epoch():
    drawn = list(itertools.chain(*prompts_in_order(True)))
    for epoch in (drawn[:16], drawn[16:]):
        assert sorted(epoch) == ["film"] * 4 + ["hotel"] * 8 + ["phone"] * 4
        assert len(list(itertools.groupby(epoch))) == 3


def test_without_it_they_are_drawn_as_before():
    assert max(len(set(step)) for step in prompts_in_order(False)) > 1
    assert max(len(set(step)) for step in prompts_in_order(True)) == 1


@pytest.mark.parametrize("contrast", [False, True])
def test_a_prompt_is_shared_where_its_answers_come_together(contrast):
    given = {"run": "train", "method": "decision_transformer", "contrast": contrast}
    assert DecisionTransformer(DecisionTransformerConfig.model_validate(given)).shares_prompt is contrast


def test_a_floor_is_part_of_what_is_learned():
    given = {"run": "train", "method": "decision_transformer", "loss_floor": 1.5}
    objective = DecisionTransformer(DecisionTransformerConfig.model_validate(given)).objective()
    assert "below_floor" in objective.measures
    assert np.isclose(objective._floor, 1.5)
