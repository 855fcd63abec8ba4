"""What methods share that learn by policy gradient, besides what they make of rewards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.online.policy_gradient import PolicyGradientConfig
from steerboard_workers.alignment.batches.batch_source import BatchSource
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.objectives import Objective
from steerboard_workers.alignment.online.answers import Answers, equal_groups
from steerboard_workers.alignment.online.objective import LARGEST_ERROR_BF16, PolicyGradientObjective, Turn
from steerboard_workers.alignment.online.rows import RowTexts
from steerboard_workers.alignment.online.source import Judgement, PolicyGradientSource
from steerboard_workers.alignment.rendering.render import RenderedGroup, answer_room
from steerboard_workers.alignment.rollouts import SourceContext
from steerboard_workers.alignment.training_method import OnlineMethod, Row

Config = TypeVar("Config", bound=PolicyGradientConfig)
Part = TypeVar("Part", PolicyGradientSource, PolicyGradientObjective)


class PolicyGradientMethod(OnlineMethod[Config]):
    """Subclasses give `advantages`, or `judge` where these take more than the rewards of a sampling.

    `further`: names of values of tokens that `judge` adds to the advantages.
    """

    further: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.texts = RowTexts()
        self.turn = Turn()
        self._following: list[PolicyGradientSource | PolicyGradientObjective] = []
        self.longest = 1

    def change(self, config: Config) -> None:
        """A KL in the reward changes with the next sampling, one in the loss immediately."""
        super().change(config)
        for part in self._following:
            part.config = config

    def follows(self, part: Part) -> Part:
        """`part`, whose config changes with the method's."""
        self._following.append(part)
        return part

    @property
    def temperature(self) -> float:
        return self.config.temperature

    @property
    def drops_out(self) -> bool:
        return False

    @property
    def shares_prompt(self) -> bool:
        return self.config.answers > 1

    @property
    def needs_entropy(self) -> bool:
        return self.config.entropy_weight > 0

    def advantages(self, answers: Answers) -> list[NDArray[np.float64]]:
        """The advantages of each answer in turn, (T,) of its tokens; NaN to leave it out."""
        raise NotImplementedError

    def tied(self, answers: Answers) -> NDArray[np.bool_]:
        """(G,): whether nothing can be learned from the answers to a prompt. Asked without log-ratios."""
        return equal_groups(answers.rewards)

    def judge(self, number: int, answers: Answers, examples: Sequence[Example], context: SourceContext) -> Judgement:
        """What the answers of sampling `number` teach. examples: of each answer, with its ids as the response."""
        return Judgement(self.advantages(answers))

    def example(self, number: int, row: Row, group: RenderedGroup) -> Example | None:
        self.texts.add(number, row)
        return super().example(number, row, group)

    def source(self, context: SourceContext) -> BatchSource:
        turns = self.config.environment.max_turns if self.config.environment is not None else 1
        self.longest = answer_room(context.renderer.max_length, self.config.max_new_tokens) * turns
        if context.mixed:
            self.turn.largest_error = LARGEST_ERROR_BF16
        source = PolicyGradientSource(context, self.config, self.turn, self.texts, self.judge, self.tied, self.further)
        return self.follows(source)

    def objective(self) -> Objective:
        """Called after `source`: the constant reducer divides by the longest answer that fits."""
        return self.follows(PolicyGradientObjective(self.config, self.turn, self.longest))
