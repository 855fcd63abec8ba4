"""Texts that are learned next to rewards: ptx_coefficient times E[log pi(x)] in Eq. 2 of arXiv 2203.02155."""

from __future__ import annotations

import math
from collections.abc import Sequence

from steerboard_contracts.online.policy_gradient import PolicyGradientConfig
from steerboard_workers.alignment.batches.batch_source import Besides
from steerboard_workers.alignment.batches.order import Order
from steerboard_workers.alignment.examples import Example


class PretrainingTexts:
    """What each update learns of them: `ptx_rows` in an order of their own, a function of (seed, step), again and again
    for as many steps as there are."""

    def __init__(self, examples: Sequence[Example], config: PolicyGradientConfig, steps: int) -> None:
        self._examples = examples
        self._coefficient = config.ptx_coefficient
        self._rows = config.ptx_rows
        # `kl_stop` makes no more steps, only other ones.
        epochs = math.ceil(steps * self._rows / len(examples))
        self._order = Order(len(examples), self._rows, epochs, config.seed)

    def step(self, number: int) -> Besides:
        return self._of([self._examples[i] for i in self._order.step(number)])

    def longest(self) -> Besides:
        return self._of(sorted(self._examples, key=lambda e: -max(e.lengths))[: self._rows])

    def _of(self, examples: Sequence[Example]) -> Besides:
        return Besides("ptx", examples, self._coefficient)
