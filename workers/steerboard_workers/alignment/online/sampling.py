"""Answers to prompts, sampled and rewarded: where every method starts that learns from rewards of its own answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.errors import BadInput
from steerboard_contracts.online.environments import EpisodicConfig
from steerboard_contracts.online.rewarded import RewardedOnlineConfig
from steerboard_workers.alignment.batches.batch_source import Batch
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.online.ahead import Ahead
from steerboard_workers.alignment.online.answers import equal_groups, length_metrics
from steerboard_workers.alignment.online.episodes import Episodes, turn_metrics
from steerboard_workers.alignment.online.rows import RowTexts
from steerboard_workers.alignment.online.scoring import AnswerRewards, Scores
from steerboard_workers.alignment.policy_gradient.shaping import RunningMoments, overlong
from steerboard_workers.alignment.rendering.render import answer_room
from steerboard_workers.alignment.rollouts import Rollout, RolloutSource, SourceContext

Floats = NDArray[np.float64]
# What environments draw by for held-out prompts: the same at every evaluation.
_HELD_OUT = -1


@dataclass(frozen=True)
class Sampled:
    """n answers to each of G prompts, in turn. `examples`: of each answer, with its ids as the response."""

    prompts: list[Example]
    rollouts: list[Rollout]
    examples: list[Example]
    scores: Scores

    def grouped(self, values: Floats) -> Floats:
        """(G, n) of values (G n,) of the answers in turn."""
        return values.reshape(len(self.prompts), -1)

    def of_prompts(self, places: Sequence[int]) -> Sampled:
        n = len(self.rollouts) // len(self.prompts)
        answers = [place * n + index for place in places for index in range(n)]
        return Sampled(
            [self.prompts[place] for place in places],
            [self.rollouts[place] for place in answers],
            [self.examples[place] for place in answers],
            self.scores.of(answers),
        )

    @classmethod
    def joined(cls, parts: Sequence[Sampled]) -> Sampled:
        return cls(
            [prompt for part in parts for prompt in part.prompts],
            [rollout for part in parts for rollout in part.rollouts],
            [example for part in parts for example in part.examples],
            Scores.joined([part.scores for part in parts]),
        )


def same_total(sampled: Sampled) -> NDArray[np.bool_]:
    """(G,): whether all answers to a prompt have the same reward in all."""
    return equal_groups(sampled.grouped(sampled.scores.total))


def refilled(
    draw: Callable[[], Sampled],
    wanted: int,
    most: int,
    tied: Callable[[Sampled], NDArray[np.bool_]] = same_total,
) -> tuple[Sampled, Sampled, dict[str, float]]:
    """(what to learn, all that was drawn, metrics). Dynamic sampling, Section 3.2 of arXiv 2503.14476: the first
    `wanted` prompts that are not `tied` (G,), of as many draws as that takes and `most` after the first one. Where
    there are fewer, those; where there is none, the first draw as it is, for its figures: it is not to be learned."""
    first = draw()
    if not most:
        return first, first, {}
    drawn = [first]
    whole = first
    # Together: which are equal may depend on all rewards that were drawn.
    while len(drawn) <= most and int((~tied(whole)).sum()) < wanted:
        drawn.append(draw())
        whole = Sampled.joined(drawn)
    equal = tied(whole)
    kept = np.flatnonzero(~equal)[:wanted].tolist()
    metrics = {
        "refills": float(len(drawn) - 1),
        "equal_groups_drawn": float(equal.mean()),
        "missing_groups": float(wanted - len(kept)),
    }
    return (whole.of_prompts(kept) if kept else first), whole, metrics


class RewardedSource(RolloutSource):
    """The base of sources whose answers are rewarded. Subclasses give `batch`."""

    config: RewardedOnlineConfig

    def __init__(self, context: SourceContext, config: RewardedOnlineConfig, texts: RowTexts) -> None:
        super().__init__(context, config)
        self.rewards = AnswerRewards(config, texts, context.passes, context.reward_access)
        environment = config.environment if isinstance(config, EpisodicConfig) else None
        self._episodes = None
        if isinstance(config, EpisodicConfig) and environment is not None:
            self._episodes = Episodes(
                config, environment, texts, context.renderer, context.phases, context.reward_access
            )
        self._lists = self.steps  # of prompts, until all epochs are through
        self._drawn = 0  # how many of them were sampled
        self._moments = RunningMoments()
        self._ahead = Ahead()
        self.step = 0  # optimiser steps so far, which subclasses count
        self.sampled_at = 0  # the step whose weights sampled the oldest answers in hand
        self._longest = answer_room(context.renderer.max_length, config.max_new_tokens)
        if config.overlong_tokens is not None and config.overlong_tokens >= self._longest:
            raise BadInput(
                f"overlong_tokens {config.overlong_tokens} leaves no answer of {self._longest} tokens unpunished",
                code="bad_config",
                hint="Lower overlong_tokens, or raise max_new_tokens.",
            )

    def held_out(self, step: int) -> Batch:
        """Greedy answers to the held-out prompts: their rewards, lengths, and the share that ended."""
        rollouts, examples = self.held_out_answers(step, 0.0)
        if not rollouts:
            return Batch([])
        return Batch([], self.held_out_metrics(rollouts, examples))

    def held_out_answers(self, step: int, temperature: float) -> tuple[list[Rollout], list[Example]]:
        """An answer to each held-out prompt."""
        prompts, policy = self.context.held_out, self.context.policy
        if not prompts:
            return [], []
        if self._episodes is not None:
            prompts, groups = self._episodes.sample(
                policy, step, prompts, seeds=_HELD_OUT, answers=1, temperature=temperature
            )
        else:
            max_new_tokens = self.config.max_new_tokens
            groups = policy.sample(step, prompts, temperature=temperature, max_new_tokens=max_new_tokens)
        return [group[0] for group in groups], answered(prompts, groups)

    def held_out_metrics(self, rollouts: Sequence[Rollout], examples: Sequence[Example]) -> dict[str, float]:
        metrics = self.rewards.score(rollouts, examples, alone=True).metrics()
        metrics |= length_metrics(rollouts, [np.zeros(1)] * len(rollouts))
        return metrics | (turn_metrics(rollouts) if self._episodes is not None else {})

    def state(self) -> dict[str, Any]:
        ahead = {"ahead": self._ahead.state(), "sampled_at": self.sampled_at}
        return {"drawn": self._drawn, "moments": asdict(self._moments), **ahead}

    def restore(self, state: dict[str, Any]) -> None:
        """What older checkpoints lack is what it was for them."""
        self._drawn = state.get("drawn", state.get("sampled", 0))
        self._moments = RunningMoments(**state.get("moments", {}))
        self._ahead.restore(state.get("ahead"))
        self.sampled_at = state.get("sampled_at", 0)

    def collected(self) -> tuple[Sampled, dict[str, float]]:
        """The answers to learn in one step, and metrics. Their rewards are of all answers that were drawn: a policy's
        reward is not that of the prompts on which its answers differ."""
        self.rewards.check_given()
        self.sampled_at = self.step
        sampled, drawn, metrics = refilled(self._draw, self.config.batch, self.config.refill, self.tied)
        if self.config.normalise_rewards:
            self._moments.add(drawn.scores.total)
        if self.config.staleness:
            metrics["off_policy_steps"] = float(self.step - self.sampled_at)
        if self._episodes is not None:
            metrics |= turn_metrics(drawn.rollouts)
        return sampled, drawn.scores.metrics() | metrics | self.rewards.figures()

    def tied(self, sampled: Sampled) -> NDArray[np.bool_]:
        """(G,): whether there is nothing to learn from the answers to a prompt, so that others are asked for it."""
        return equal_groups(sampled.grouped(self.foreseen(sampled)))

    def foreseen(self, drawn: Sampled) -> Floats:
        """(n,) by answer: the rewards as the step learns them, where `drawn` is all that it draws. The moments of
        the run stay as they are until the step has drawn."""
        moments = replace(self._moments)
        moments.add(drawn.scores.total)
        return self.shaped(drawn, moments)[0]

    def shaped(self, sampled: Sampled, moments: RunningMoments | None = None) -> tuple[Floats, Floats]:
        """(rewards, penalties), each (n,) by answer: normalised by the moments of the run or those given, and
        clipped, less the penalties."""
        config, rewards = self.config, sampled.scores.total.copy()
        if config.normalise_rewards:
            rewards = (moments or self._moments).normalised(rewards)
        if config.reward_clip is not None:
            rewards = rewards.clip(-config.reward_clip, config.reward_clip)
        penalties = self.penalties(sampled)
        return rewards - penalties, penalties

    def penalties(self, sampled: Sampled) -> Floats:
        """(n,) by answer: what those pay that were cut, and long ones."""
        config = self.config
        penalties: Floats = config.cut_penalty * np.array([float(not rollout.finished) for rollout in sampled.rollouts])
        margin = config.overlong_margin(self._longest)
        if margin is not None:
            lengths = [len(rollout.ids) for rollout in sampled.rollouts]
            penalties -= config.overlong_penalty * overlong(lengths, self._longest, margin)
        return penalties

    def early_rewards(self, rollouts: Sequence[Rollout]) -> list[Floats]:
        """(T,) of each rollout: what the environment gave for turns before the last; empty without an environment."""
        environment = self.config.environment if isinstance(self.config, EpisodicConfig) else None
        return [] if environment is None else [rollout.early_rewards(environment.weight) for rollout in rollouts]

    @property
    def steps_of_a_sampling(self) -> int:
        """Optimiser steps that learn from it."""
        return max(1, self.steps // max(1, self._lists))

    def samplings(self) -> int:
        """How many there are where neither refills nor `kl_stop` add further ones."""
        steps = self.config.max_steps or self.steps
        return min(self._lists, math.ceil(steps * self._lists / self.steps))

    def is_kept(self, number: int) -> bool:
        """Whether answers of this sampling are kept to be read."""
        config = self.config
        every = math.ceil(self.samplings() / config.inspect_group_steps)
        # `kl_stop` makes more samplings than there are lists of prompts.
        return number % every == 0 and number < every * config.inspect_group_steps

    def _draw(self) -> Sampled:
        prompts = self._listed(self._drawn)
        if self._episodes is not None:
            prompts, groups = self._episodes.sample(
                self.context.policy,
                self._drawn,
                prompts,
                seeds=self._drawn,
                answers=self.config.answers,
                temperature=self.config.temperature,
            )
            sampled_at: int | None = self.step
        else:
            groups, sampled_at = self._ahead.take(self._drawn) or (self.sample(self._drawn, prompts), self.step)
        before = self.step - self.steps_of_a_sampling if sampled_at is None else sampled_at
        self.sampled_at = min(self.sampled_at, max(0, before))
        self._drawn += 1
        while len(self._ahead) < self.config.staleness and self._drawn + len(self._ahead) < self.samplings():
            number = self._drawn + len(self._ahead)
            self._ahead.begin(self.context.policy, self.begin(number, self._listed(number)), number, self.step)
        rollouts = [rollout for group in groups for rollout in group]
        examples = answered(prompts, groups)
        with self.context.phases.measure("score") as phase:
            scores = self.rewards.score(rollouts, examples, sampling=self._drawn - 1)
            phase.tokens += sum(e.tokens for e in examples)
        return Sampled(prompts, rollouts, examples, scores)

    def rehearsal(self) -> list[Sequence[Example]]:
        """Rollouts of several turns may fill the window."""
        batches = super().rehearsal()
        environment = self.config.environment if isinstance(self.config, EpisodicConfig) else None
        if environment is None or environment.max_turns == 1:
            return batches
        window, most = self.context.renderer.max_length, environment.max_tokens or self.context.renderer.max_length
        rooms = [[min(window - len(e.prompt), most + self._longest) for e in batch] for batch in batches]
        return [
            [self._filled(example, room) for example, room in zip(batch, of_batch, strict=True)]
            for batch, of_batch in zip(batches, rooms, strict=True)
        ]

    def _listed(self, number: int) -> list[Example]:
        """Refills, and `kl_stop`, sample more often than there are lists of prompts."""
        return self.prompts(number % self._lists)


def answered(prompts: Sequence[Example], groups: Sequence[Sequence[Rollout]]) -> list[Example]:
    """One of each answer, with the ids that were sampled as what is learned."""
    return [rollout.answered(prompt) for prompt, group in zip(prompts, groups, strict=True) for rollout in group]
