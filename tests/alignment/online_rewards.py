"""Rewards of answers, for tests of what is made of them."""

from __future__ import annotations

import numpy as np

from steerboard_contracts.methods import needed_method
from steerboard_contracts.online.policy_gradient import PolicyGradientConfig
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.online.rows import RowTexts
from steerboard_workers.alignment.online.scoring import AnswerRewards
from steerboard_workers.alignment.rollouts import Rollout

NAN = float("nan")


def config_of(method: str = "rloo", **changes) -> PolicyGradientConfig:
    config = needed_method(method).config.model_validate({"method": method, **changes})
    assert isinstance(config, PolicyGradientConfig)
    return config


class Given:
    """Passes with rewards that are given by model."""

    def __init__(self, **rewards: list[float]) -> None:
        self._rewards = rewards

    def has(self, model: str) -> bool:
        return model in self._rewards

    def renderer(self, model: str) -> None:
        return None

    def closing_ids(self, model: str) -> list[int]:
        return []

    def per_sequence(self, examples, model=None):
        return [np.array([reward], dtype=np.float32) for reward in self._rewards[model]]


def answers_of(*texts: str, row: int = 7) -> list[Rollout]:
    ids = np.arange(4, dtype=np.int32)
    return [Rollout(row, n, ids, np.zeros(4, np.float32), text, True) for n, text in enumerate(texts)]


def scored(answers: list[Rollout], passes=None, references=None, **config):
    rewards = AnswerRewards(config_of(**config), RowTexts(references or {}), passes or Given())
    return rewards.score(answers, [Example(a.row, a.ids, (a.ids,)) for a in answers])
