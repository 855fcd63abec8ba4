"""What methods share that learn by policy gradient, besides what they make of rewards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.policy_gradient import PolicyGradientConfig
from steerboard_workers.alignment.batch_source import BatchSource
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.objectives import Objective
from steerboard_workers.alignment.online.answers import Answers
from steerboard_workers.alignment.online.objective import PolicyGradientObjective, Turn
from steerboard_workers.alignment.online.source import Judgement, PolicyGradientSource
from steerboard_workers.alignment.render import RenderedGroup, answer_room
from steerboard_workers.alignment.rollouts import SourceContext
from steerboard_workers.alignment.training_method import OnlineMethod, Row

Config = TypeVar("Config", bound=PolicyGradientConfig)


class PolicyGradientMethod(OnlineMethod[Config]):
    """Subclasses give `advantages`, or `judge` where these take more than the rewards of a sampling.

    `further`: names of values of tokens that `judge` adds to the advantages.
    """

    further: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.references: dict[int, str] = {}
        self.turn = Turn()
        self.longest = 1

    @property
    def temperature(self) -> float:
        return self.config.temperature

    @property
    def drops_out(self) -> bool:
        return False

    def advantages(self, answers: Answers) -> list[NDArray[np.float64]]:
        """Of each answer in turn, (T,) of its tokens; NaN to leave it out."""
        raise NotImplementedError

    def judge(self, number: int, answers: Answers, examples: Sequence[Example], context: SourceContext) -> Judgement:
        """What the answers of sampling `number` teach. examples: of each answer, with its ids as the response."""
        return Judgement(self.advantages(answers))

    def example(self, number: int, row: Row, group: RenderedGroup) -> Example | None:
        reference = reference_answer(row)
        if reference is not None:
            self.references[number] = reference
        return super().example(number, row, group)

    def source(self, context: SourceContext) -> BatchSource:
        self.longest = answer_room(context.renderer.max_length, self.config.max_new_tokens)
        return PolicyGradientSource(context, self.config, self.turn, self.references, self.judge, self.further)

    def objective(self) -> Objective:
        """After `source`: the constant reducer divides by the longest answer that fits."""
        return PolicyGradientObjective(self.config, self.turn, self.longest)


def reference_answer(row: Row) -> str | None:
    """Of a prompt its `reference`, of an instruction its response. Labelled and unpaired responses are anybody's."""
    if "reference" in row:
        return row["reference"] or None
    if "reward" in row or "desirable" in row:
        return None
    return row.get("response")
