"""Batches of answers to learn by policy gradient: sample, score, read log-probs, and hand out minibatches."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.policy_gradient import PolicyGradientConfig
from steerboard_workers.alignment.batch_source import BadSource, Batch, pack_examples, unpack_examples
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.online.answers import Answers, equal_groups, length_metrics, sampler_metrics
from steerboard_workers.alignment.online.objective import ADVANTAGES, OLD, REFERENCE, Turn
from steerboard_workers.alignment.online.scoring import AnswerRewards, Scores
from steerboard_workers.alignment.rollouts import Rollout, RolloutSource, SourceContext

Floats = NDArray[np.float64]
LogProbs = Sequence[NDArray[np.float32]]


@dataclass(frozen=True)
class Judgement:
    """Of the answers of one sampling. advantages: of each in turn, (T,) of its tokens; NaN to leave it out. `further`:
    by name, likewise, what the objective needs besides. `weight` of all of them: 0 for answers from which the policy is
    not to learn."""

    advantages: list[Floats]
    further: Mapping[str, Sequence[Floats]] = field(default_factory=dict)
    weight: float = 1.0
    metrics: Mapping[str, float] = field(default_factory=dict)


class Judge(Protocol):
    """examples: of each answer of sampling `number`, with its ids as the response."""

    def __call__(
        self, number: int, answers: Answers, examples: Sequence[Example], context: SourceContext
    ) -> Judgement: ...


class PolicyGradientSource(RolloutSource):
    """A sampling is learned in `updates` passes over its `minibatches`, each an optimiser step, unless its policy has
    moved too far before (`kl_stop`). `judge` gives what the answers teach; `further` are the names of the values of
    tokens that it adds."""

    config: PolicyGradientConfig

    def __init__(
        self,
        context: SourceContext,
        config: PolicyGradientConfig,
        turn: Turn,
        references: Mapping[int, str],
        judge: Judge,
        further: Sequence[str] = (),
    ) -> None:
        super().__init__(context, config)
        self._turn = turn
        self._judge = judge
        self._further = further
        self._rewards = AnswerRewards(config, references, context.passes)
        self._samplings = self.steps
        self.steps *= config.updates * config.minibatches
        self._sampled = 0  # how often
        self._parts: list[list[Example]] = []
        self._waiting: list[int] = []

    def batch(self, step: int) -> Batch:
        moved = bool(self._waiting) and self._moved_too_far(self._parts[self._waiting[0]])
        if self._waiting and not moved:
            self._turn.first = False
            return Batch(self._parts[self._waiting.pop(0)])
        examples, metrics = self._sample(self._sampled)
        self._parts = _split(examples, self.config.minibatches)
        self._waiting = self._turns(self._sampled)
        self._sampled += 1
        self._turn.first = True
        if self.config.kl_stop is not None:
            metrics["kl_stopped"] = float(moved)
        return Batch(self._parts[self._waiting.pop(0)], metrics)

    def held_out(self, step: int) -> Batch:
        """Greedy answers to the held-out prompts: their rewards, lengths, and the share that ended."""
        prompts, config = self.context.held_out, self.config
        if not prompts:
            return Batch([])
        groups = self.context.policy.sample(step, prompts, temperature=0, max_new_tokens=config.max_new_tokens)
        rollouts = [group[0] for group in groups]
        scores = self._rewards.score(rollouts, _examples(prompts, groups))
        return Batch([], scores.metrics() | length_metrics(rollouts, [np.zeros(1)] * len(rollouts)))

    def state(self) -> dict[str, Any]:
        return {
            "sampled": self._sampled,
            "parts": [pack_examples(part) for part in self._parts] if self._waiting else [],
            "waiting": list(self._waiting),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._sampled = state["sampled"]
        self._parts = [unpack_examples(part) for part in state["parts"]]
        self._waiting = list(state["waiting"])

    # -- one sampling ---------------------------------------------------------------------------------------------

    def _sample(self, number: int) -> tuple[list[Example], dict[str, float]]:
        context, config = self.context, self.config
        self._rewards.check_given()
        # `kl_stop` leaves steps for more samplings than there are batches of prompts.
        prompts = self.prompts(number % self._samplings)
        groups = self.sample(number, prompts)
        rollouts = [one for group in groups for one in group]
        examples = _examples(prompts, groups)
        tokens = sum(e.tokens for e in examples)
        with context.phases.measure("score") as phase:
            scores = self._rewards.score(rollouts, examples)
            phase.tokens += tokens
        with context.phases.measure("reference") as phase:
            old = [one[0] for one in context.passes.per_label(examples)]
            reference = [one[0] for one in context.passes.per_label(examples, "reference")] if config.kl_weight else []
            phase.tokens += tokens * (2 if reference else 1)
        rewards, metrics = self._to_learn(scores, rollouts, len(prompts))
        apart = [o.astype(np.float64) - r for o, r in zip(old, reference, strict=True)] if reference else []
        in_reward = apart and config.kl_in == "reward"
        answers = Answers(rewards, apart if in_reward else [np.zeros(len(one)) for one in old])
        judgement = self._judge(number, answers, examples, context)
        advantages = judgement.advantages
        if apart:
            metrics["kl"] = float(np.mean([one.sum() for one in apart]))
        metrics |= length_metrics(rollouts, advantages) | sampler_metrics(rollouts, old) | dict(judgement.metrics)
        of_tokens: dict[str, Sequence[NDArray[Any]]] = {OLD: old, ADVANTAGES: advantages, **judgement.further}
        if reference:
            of_tokens[REFERENCE] = reference
        kept = [
            replace(example, weight=judgement.weight, token_values=_values(of_tokens, place))
            for place, example in enumerate(examples)
            if not np.isnan(advantages[place]).any()
        ]
        if not kept:
            raise BadSource(
                f"no answer of sampling {number + 1} can be learned: none has a reward to compare",
                hint="Sample more answers to each prompt, or more prompts in a step.",
            )
        return kept, metrics

    def _to_learn(self, scores: Scores, rollouts: Sequence[Rollout], prompts: int) -> tuple[Floats, dict[str, float]]:
        """(rewards (G, n), metrics): clipped, less the penalty of answers that were cut; NaN for what is left out."""
        config = self.config
        rewards = scores.total.copy()
        if config.reward_clip is not None:
            rewards = rewards.clip(-config.reward_clip, config.reward_clip)
        rewards -= config.cut_penalty * np.array([not one.finished for one in rollouts])
        rewards = rewards.reshape(prompts, config.answers)
        metrics = scores.metrics()
        if config.answers > 1:
            equal = equal_groups(rewards)
            metrics["equal_groups"] = float(equal.mean())
            # Where all are equal, a step without any gradient is better than none: Adam and the schedule go on.
            if config.drop_equal and not equal.all():
                rewards[equal] = np.nan
        return rewards, metrics

    # -- minibatches ----------------------------------------------------------------------------------------------

    def _turns(self, number: int) -> list[int]:
        """Which minibatch each step learns, after each pass in another order."""
        found: list[int] = []
        for update in range(self.config.updates):
            key = [self.config.seed % 2**64, (number << 8) + update]
            order = np.random.Generator(np.random.Philox(key=key)).permutation(len(self._parts)).tolist()
            found += order
        return found

    def _moved_too_far(self, part: Sequence[Example]) -> bool:
        if self.config.kl_stop is None:
            return False
        with self.context.phases.measure("reference") as phase:
            now = np.concatenate([one[0] for one in self.context.passes.per_label(part)])
            phase.tokens += sum(e.tokens for e in part)
        old = np.concatenate([e.token_values[OLD][0] for e in part])
        away = (now - old).astype(np.float64)
        return bool(np.mean(np.expm1(away) - away) > self.config.kl_stop)

    def _filled(self, prompt: Example, room: int) -> Example:
        filled = super()._filled(prompt, room)
        zeros = np.zeros(len(filled.responses[0]), dtype=np.float32)
        return replace(filled, token_values=dict.fromkeys((OLD, ADVANTAGES, REFERENCE, *self._further), (zeros,)))


def _examples(prompts: Sequence[Example], groups: Sequence[Sequence[Rollout]]) -> list[Example]:
    """One of each answer, with the ids that were sampled."""
    return [
        replace(prompt, responses=(one.ids,)) for prompt, group in zip(prompts, groups, strict=True) for one in group
    ]


def _values(of_answers: Mapping[str, Sequence[NDArray[Any]]], place: int) -> dict[str, tuple[NDArray[np.float32], ...]]:
    return {name: (values[place].astype(np.float32),) for name, values in of_answers.items()}


def _split(examples: list[Example], parts: int) -> list[list[Example]]:
    """Into so many parts of nearly equal numbers, or into single examples where there are fewer."""
    ends = np.linspace(0, len(examples), min(parts, len(examples)) + 1).round().astype(int).tolist()
    return [examples[start:end] for start, end in itertools.pairwise(ends)]
