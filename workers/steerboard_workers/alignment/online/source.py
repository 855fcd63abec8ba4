"""Batches of answers to learn by policy gradient: sample, score, read log-probs, and hand out minibatches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.online.policy_gradient import PRETRAINING, PolicyGradientConfig
from steerboard_workers.alignment.batches.batch_source import BadSource, Batch, Besides, pack_examples, unpack_examples
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.online.answers import Answers, length_metrics
from steerboard_workers.alignment.online.groups import Sampling, answer_group
from steerboard_workers.alignment.online.mismatch import correction, sampler_metrics
from steerboard_workers.alignment.online.objective import ADVANTAGES, OLD, REFERENCE, SAMPLED, SAMPLER_WEIGHTS, Turn
from steerboard_workers.alignment.online.pretraining import PretrainingTexts
from steerboard_workers.alignment.online.rows import RowTexts
from steerboard_workers.alignment.online.sampling import RewardedSource, Sampled
from steerboard_workers.alignment.policy_gradient.kl import LOG_RATIO_LIMIT
from steerboard_workers.alignment.rollouts import SourceContext

Floats = NDArray[np.float64]
LogProbs = Sequence[NDArray[np.float32]]
# Among the rewards of an answer, what its length costs it.
LENGTH = "length"


@dataclass(frozen=True)
class Judgement:
    """What is known of the answers of one sampling. advantages: of each in turn, (T,) of its tokens; NaN to leave it
    out. `further`: by name, in the same shape, what the objective needs besides. `weight` of all of them: 0 for answers
    from which the policy is not to learn."""

    advantages: list[Floats]
    further: Mapping[str, Sequence[Floats]] = field(default_factory=dict)
    weight: float = 1.0
    metrics: Mapping[str, float] = field(default_factory=dict)


class Judge(Protocol):
    """examples: of each answer of sampling `number`, with its ids as the response."""

    def __call__(
        self, number: int, answers: Answers, examples: Sequence[Example], context: SourceContext
    ) -> Judgement: ...


class Ties(Protocol):
    """(G,): whether the answers to a prompt teach nothing, since they have the same rewards."""

    def __call__(self, answers: Answers) -> NDArray[np.bool_]: ...


class PolicyGradientSource(RewardedSource):
    """A sampling is learned in `updates` passes over its `minibatches`, each an optimiser step, unless its policy has
    moved too far before (`kl_stop`). `judge` gives what the answers teach, `ties` which do not; `further` are the names
    of the values of tokens that `judge` adds."""

    config: PolicyGradientConfig

    def __init__(
        self,
        context: SourceContext,
        config: PolicyGradientConfig,
        turn: Turn,
        texts: RowTexts,
        judge: Judge,
        ties: Ties,
        further: Sequence[str] = (),
    ) -> None:
        super().__init__(context, config, texts)
        self._turn = turn
        self._judge = judge
        self._ties = ties
        self._further = further
        self.steps *= config.updates * config.minibatches
        texts_besides = context.further_data.get(PRETRAINING.name)
        self._pretraining = PretrainingTexts(texts_besides, config, self.steps) if texts_besides else None
        self._sampled = 0  # how often
        self._parts: list[list[Example]] = []
        self._waiting: list[int] = []

    def batch(self, step: int) -> Batch:
        self.step = step
        old = self._too_old()
        moved = bool(self._waiting) and not old and self._moved_too_far(self._parts[self._waiting[0]])
        if self._waiting and not (moved or old):
            self._turn.first = False
            return self._minibatch(step)
        dropped = sum(len(self._parts[place]) for place in self._waiting) if old else 0
        examples, metrics, nothing = self._sample(self._sampled, step)
        self._parts = _split(examples, self.config.minibatches)
        self._waiting = self._turns(self._sampled)
        self._sampled += 1
        self._turn.first = True
        if self.config.kl_stop is not None:
            metrics["kl_stopped"] = float(moved)
        if self.config.max_off_policy_steps is not None:
            metrics["dropped_old"] = float(dropped)
        if nothing:
            self._parts, self._waiting = [], []
            return Batch([], metrics, skipped=True)
        return self._minibatch(step, metrics)

    def rehearsal(self) -> list[Sequence[Example]]:
        """The longest prompts, each with all its answers, as they share it."""
        (longest,) = super().rehearsal()
        answers = self.config.answers
        return [[example for example in longest[: math.ceil(len(longest) / answers)] for _ in range(answers)]]

    def rehearsed_besides(self) -> Besides | None:
        return self._pretraining.longest() if self._pretraining is not None else None

    def state(self) -> dict[str, Any]:
        return super().state() | {
            "sampled": self._sampled,
            "parts": [pack_examples(part) for part in self._parts] if self._waiting else [],
            "waiting": list(self._waiting),
            "values": list(self._turn.values),
        }

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._sampled = state["sampled"]
        self._parts = [unpack_examples(part) for part in state["parts"]]
        self._waiting = list(state["waiting"])
        a, b = state.get("values", (1.0, 0.0))  # older checkpoints have none: it was the identity
        self._turn.values = float(a), float(b)

    # -- one sampling ---------------------------------------------------------------------------------------------

    def _sample(self, number: int, step: int) -> tuple[list[Example], dict[str, float], bool]:
        """(what to learn, metrics, whether that is nothing). Prompts with equal answers, where these are to be left
        out, are not learned either where there are no others: in arXiv 2503.14476 one draws on, and here `refill` ends
        that."""
        context, config = self.context, self.config
        sampled, metrics = self.collected()
        rollouts, examples = sampled.rollouts, sampled.examples
        rewards, sources, equal = self._to_learn(sampled)
        nothing = bool(equal.all()) and (config.drop_equal or config.refill > 0)
        if config.answers > 1:
            metrics["equal_groups"] = float(equal.mean())
        # The only update of a sampling reads the policy itself. The first answers of a run are read here as well, to
        # compare the two.
        read = not (number and self._updates_once) or nothing or bool(np.isnan(rewards).any())
        old = self._read(examples) if read else [rollout.log_probs for rollout in rollouts]
        reference = self._read(examples, "reference") if config.kl_weight else []
        apart = [o.astype(np.float64) - r for o, r in zip(old, reference, strict=True)] if reference else []
        in_reward = apart and config.kl_in == "reward"
        # What is reported is not clamped.
        log_ratios = (
            [log_ratio.clip(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT) for log_ratio in apart]
            if in_reward
            else [np.zeros(len(rollout.ids)) for rollout in rollouts]
        )
        moments = (self._moments.mean, self._moments.divisor) if config.normalise_rewards else (0.0, 1.0)
        early = self.early_rewards(rollouts)
        answers = Answers(rewards, log_ratios, sources, {**sampled.scores.weights, LENGTH: 1.0}, moments, early)
        judgement = self._judge(number, answers, examples, context)
        advantages = judgement.advantages
        if context.keep_group is not None and self.is_kept(number):
            sampling = Sampling(rollouts, sampled.scores.sources, rewards, advantages, apart, equal)
            for place, prompt in enumerate(sampled.prompts[: config.inspect_groups]):
                context.keep_group(step + 1, answer_group(place, prompt, sampling, context.renderer.tokenizer))
        metrics |= length_metrics(rollouts, advantages) | dict(judgement.metrics)
        of_tokens: dict[str, Sequence[NDArray[Any]]] = {ADVANTAGES: advantages, **judgement.further}
        of_tokens[OLD if read else SAMPLED] = old
        if read:
            metrics |= sampler_metrics(rollouts, old, config.max_sampler_difference)
            if apart:
                metrics["kl"] = float(np.mean([log_ratio.sum() for log_ratio in apart]))
        if reference:
            of_tokens[REFERENCE] = reference
        if config.corrects_sampler:
            corrected = correction(rollouts, old, config)
            of_tokens[SAMPLER_WEIGHTS] = corrected.weights
            metrics |= corrected.metrics()
            nothing = nothing or corrected.masked == 1
        learned = [
            replace(example, weight=judgement.weight, token_values=_values(of_tokens, place))
            for place, example in enumerate(examples)
            if not np.isnan(advantages[place]).any()
        ]
        if not learned:
            raise BadSource(
                f"no answer of sampling {number + 1} can be learned: none has a reward to compare",
                hint="Sample more answers to each prompt, or more prompts in a step.",
            )
        return learned, metrics, nothing

    @property
    def _updates_once(self) -> bool:
        """Whether nothing needs log-probs of the policy before its update, which is the only one of a sampling."""
        config = self.config
        in_reward = config.kl_weight > 0 and config.kl_in == "reward"
        return config.updates * config.minibatches == 1 and not config.corrects_sampler and not in_reward

    def _read(self, examples: Sequence[Example], model: str | None = None) -> LogProbs:
        """The log-probs of the answers' tokens."""
        with self.context.phases.measure("reference") as phase:
            phase.tokens += sum(e.tokens for e in examples)
            return [log_probs[0] for log_probs in self.context.passes.per_label(examples, model)]

    def tied(self, sampled: Sampled) -> NDArray[np.bool_]:
        """Which prompts are tied by the rewards that the step learns from, so that no prompt is kept which it finds
        tied, and none is left out that a penalty sets apart."""
        return self._ties(self._answers(sampled, sampled.grouped(self.foreseen(sampled))))

    def _to_learn(self, sampled: Sampled) -> tuple[Floats, dict[str, Floats], NDArray[np.bool_]]:
        """(rewards (G, n), likewise each source by its name, which groups are tied (G,)): NaN for what is left out."""
        config = self.config
        rewards = sampled.grouped(self.shaped(sampled)[0])
        answers = self._answers(sampled, rewards)
        equal = self._ties(answers) if config.answers > 1 else np.zeros(len(rewards), dtype=np.bool_)
        # Where all are equal, the step is skipped as a whole.
        if config.drop_equal and not equal.all():
            rewards[equal] = np.nan
        kept = {name: np.where(np.isnan(rewards), np.nan, values) for name, values in answers.sources.items()}
        return rewards, kept, equal

    def _answers(self, sampled: Sampled, rewards: Floats) -> Answers:
        """The answers without log-ratios. What answers pay for their length is a source, too."""
        sources = {name: sampled.grouped(values) for name, values in sampled.scores.sources.items()}
        if self.config.cut_penalty or self.config.shapes_length:
            sources[LENGTH] = -sampled.grouped(self.penalties(sampled))
        return Answers(rewards, (), sources, {**sampled.scores.weights, LENGTH: 1.0})

    # -- minibatches ----------------------------------------------------------------------------------------------

    def _minibatch(self, step: int, metrics: Mapping[str, float] | None = None) -> Batch:
        part = self._parts[self._waiting.pop(0)]
        # While only a critic learns, the policy learns no texts either.
        held = part[0].weight == 0
        texts = self._pretraining.step(step) if self._pretraining is not None and not held else None
        age = {"off_policy_steps": float(step - self.sampled_at)} if self._ages else {}
        return Batch(part, {**(metrics or {}), **age}, texts, holds_main=held)

    @property
    def _ages(self) -> bool:
        """Whether answers may be learned by other weights than those that sampled them."""
        return self.config.staleness > 0 or self.config.updates * self.config.minibatches > 1

    def _too_old(self) -> bool:
        """Whether what is left of a sampling was sampled too many optimiser steps ago."""
        most = self.config.max_off_policy_steps
        return bool(self._waiting) and most is not None and self.step - self.sampled_at > most

    def _turns(self, number: int) -> list[int]:
        """Which minibatch each step learns, after each pass in another order."""
        turns: list[int] = []
        for update in range(self.config.updates):
            key = [self.config.seed % 2**64, (number << 8) + update]
            order = np.random.Generator(np.random.Philox(key=key)).permutation(len(self._parts)).tolist()
            turns += order
        return turns

    def _moved_too_far(self, part: Sequence[Example]) -> bool:
        if self.config.kl_stop is None:
            return False
        with self.context.phases.measure("reference") as phase:
            now = np.concatenate([log_probs[0] for log_probs in self.context.passes.per_label(part)])
            phase.tokens += sum(e.tokens for e in part)
        old = np.concatenate([e.token_values[OLD][0] for e in part])
        away = (now - old).astype(np.float64)
        return bool(np.mean(np.expm1(away) - away) > self.config.kl_stop)

    def _filled(self, prompt: Example, room: int) -> Example:
        filled = super()._filled(prompt, room)
        zeros = np.zeros(len(filled.responses[0]), dtype=np.float32)
        names = (OLD, ADVANTAGES, REFERENCE, SAMPLER_WEIGHTS, *self._further)
        return replace(filled, token_values=dict.fromkeys(names, (zeros,)))


def _values(of_answers: Mapping[str, Sequence[NDArray[Any]]], place: int) -> dict[str, tuple[NDArray[np.float32], ...]]:
    return {name: (values[place].astype(np.float32),) for name, values in of_answers.items()}


def _split(examples: list[Example], parts: int) -> list[list[Example]]:
    """Splits into this many parts of nearly equal numbers, or into single examples where there are fewer."""
    ends = np.linspace(0, len(examples), min(parts, len(examples)) + 1).round().astype(int).tolist()
    return [examples[start:end] for start, end in itertools.pairwise(ends)]
