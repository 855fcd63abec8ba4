"""Proximal policy optimisation with a critic: Section 5 of arXiv 1707.06347. What it shares with other methods that
learn from rewards of their own answers is in `alignment.online`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from steerboard_contracts.methods.ppo import PpoConfig
from steerboard_contracts.models import SCALARS
from steerboard_workers.alignment.batches.batching import MicroBatch
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.objectives import Objective
from steerboard_workers.alignment.online.answers import Answers
from steerboard_workers.alignment.online.method import PolicyGradientMethod
from steerboard_workers.alignment.online.objective import PolicyGradientObjective
from steerboard_workers.alignment.online.source import LENGTH, Judgement
from steerboard_workers.alignment.policy_gradient.critic import judged, token_rewards
from steerboard_workers.alignment.policy_gradient.losses import reduced, value_loss
from steerboard_workers.alignment.rollouts import SourceContext

CRITIC = "critic"
# The reward of the model that a critic starts as, among the sources of the answers'.
MODEL = "model"
# Names of `Example.token_values`.
VALUES = "values"
RETURNS = "returns"


class Ppo(PolicyGradientMethod[PpoConfig]):
    """Policy and critic learn in the same steps, each at its own rate."""

    further = (VALUES, RETURNS)

    @property
    def rates(self) -> Mapping[str, float]:
        return {CRITIC: self.config.critic_lr / self.config.lr}

    def judge(self, number: int, answers: Answers, examples: Sequence[Example], context: SourceContext) -> Judgement:
        """Advantages of single tokens: the KL is taken from the reward of each, the reward of an answer comes with its
        last one, and after that nothing is worth anything, also where a limit cut the answer."""
        config = self.config
        with context.phases.measure("value") as phase:
            outputs = [responses[0].astype(np.float64) for responses in context.passes.per_label(examples, CRITIC)]
            phase.tokens += sum(example.tokens for example in examples)
        if number == 0 and context.started_as.get(CRITIC) in SCALARS:
            self.turn.values = learned_scale(answers)
        a, b = self.turn.values
        values = [a * output + b for output in outputs]
        rewards = token_rewards(answers.placed, answers.log_ratios, config.kl_weight)
        judgement = judged(rewards, values, config.gamma, config.gae_lambda)
        return Judgement(
            judgement.advantages,
            {VALUES: values, RETURNS: judgement.returns},
            weight=0.0 if number < config.critic_warmup else 1.0,
            metrics={"explained_variance": judgement.explained_variance, "value": float(np.concatenate(values).mean())},
        )

    def objective(self) -> Objective:
        return self.follows(PpoObjective(self.config, self.turn, self.longest))


def learned_scale(answers: Answers) -> tuple[float, float]:
    """a and b by which a reward model's value v becomes that of the rewards that are learned, a v + b: by its weight,
    the mean of what is added to it, and the moments that the sum is normalised by. The critic keeps the reward model's
    head, and so its scale: without this, its first values would be of another scale than its returns."""
    weight, (mean, divisor) = answers.weights.get(MODEL, 0.0), answers.moments
    if not weight:
        return 1.0, 0.0
    known = {name: rewards[~np.isnan(rewards)] for name, rewards in answers.sources.items() if name != MODEL}
    added = {name: answers.weights[name] * float(rewards.mean()) for name, rewards in known.items() if len(rewards)}
    penalty = added.pop(LENGTH, 0.0)  # taken from what is normalised already
    return weight / divisor, (sum(added.values()) - mean) / divisor + penalty


class PpoObjective(PolicyGradientObjective):
    """The clipped policy gradient and, `value_weight` times, the clipped loss of the critic. Of answers of weight 0 the
    critic alone learns."""

    config: PpoConfig
    measures = (*PolicyGradientObjective.measures, "value_loss")

    def forward(self, output: Any, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        config = self.config
        policy, sums = super().forward(output["model"], batch)
        given = batch.token_values
        a, b = self.turn.values
        of_tokens = value_loss(a * output[CRITIC] + b, given[RETURNS], given[VALUES], config.value_clip)
        of_critic = reduced(of_tokens, batch.label_counts, config.reducer, self.length)
        # All answers of a sampling have the same weight.
        loss = batch.weights[0] * policy + config.value_weight * of_critic
        return loss, torch.cat([loss.detach().double().view(1), sums[1:], of_critic.detach().double().view(1)])

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {**super().metrics(sums), "value_loss": sums["value_loss"] / sums["count"]}
