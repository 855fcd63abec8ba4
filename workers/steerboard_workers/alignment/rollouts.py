"""Answers sampled from the weights in training: what a method's source may ask of the run, and what it gets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.models import ModelRole
from steerboard_contracts.online.answer_groups import AnswerGroup
from steerboard_contracts.online.reward_access import RewardAccess
from steerboard_contracts.online_config import OnlineConfig
from steerboard_workers.alignment.batches.batch_source import BatchSource
from steerboard_workers.alignment.batches.order import Order
from steerboard_workers.alignment.examples import ChosenExperts, Example, Ids
from steerboard_workers.alignment.objectives import Passes
from steerboard_workers.alignment.rendering.render import Renderer, answer_room
from steerboard_workers.phases import Phases


@dataclass(frozen=True, slots=True)
class TurnOfRollout:
    """A turn before or at the end of a rollout of several. `tokens` of the answer, which the rollout's ids have in
    turn; `after`: ids between it and the next answer, none of which was sampled. `observation`: their messages.
    `reward` of the turn; None where the environment gave none."""

    tokens: int
    text: str
    reward: float | None = None
    after: Ids = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    observation: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Rollout:
    """Answer `n` to the prompt of row `row`, as it was sampled.

    `turns` of one with an environment, whose `text` is that of its last answer, and whose `ids` are those of all its
    answers; `ended`: the environment has ended it, and no limit; `lost`: the environment did not reply in time.

    ids (T,) with the end token that was drawn, unless `finished` is False because a limit cut the answer: to be learned
    as they are, never tokenised again. log_probs (T,) float32: log pi of each id at the sampling temperature, or at 1
    where decoding was greedy. `text` is without the end token. `routes`: of the prompt and the ids, as an `Example` has
    them, where the sampler was asked for them.
    """

    row: int
    n: int
    ids: Ids
    log_probs: NDArray[np.float32]
    text: str
    finished: bool
    turns: tuple[TurnOfRollout, ...] = ()
    ended: bool = False
    lost: bool = False
    routes: ChosenExperts | None = None

    @property
    def reward(self) -> float:
        """The sum of the turns' rewards; NaN where there is none, or the environment was lost."""
        given = [turn.reward for turn in self.turns if turn.reward is not None]
        return sum(given) if given and not self.lost else math.nan

    def answered(self, prompt: Example) -> Example:
        """The prompt with this answer: of several turns, the last one is the response, and what was sampled before it
        is learned inside of the prompt."""
        if len(self.turns) < 2:
            return replace(prompt, responses=(self.ids,), routes=() if self.routes is None else (self.routes,))
        pieces, own, at = [prompt.prompt], [np.zeros(len(prompt.prompt), dtype=np.bool_)], 0
        for turn in self.turns[:-1]:
            pieces += [self.ids[at : at + turn.tokens], turn.after]
            own += [np.ones(turn.tokens, dtype=np.bool_), np.zeros(len(turn.after), dtype=np.bool_)]
            at += turn.tokens
        return replace(
            prompt,
            prompt=np.concatenate(pieces),
            prompt_supervised=np.concatenate(own),
            responses=(self.ids[at:],),
        )

    def early_rewards(self, weight: float) -> NDArray[np.float64]:
        """(T,): what each turn but the last was worth, `weight` times, at the last token of its answer."""
        placed, at = np.zeros(len(self.ids)), 0
        for turn in self.turns[:-1]:
            at += turn.tokens
            placed[at - 1] = weight * (turn.reward or 0.0)
        return placed


Begun = Any
"""A sampling that `LivePolicy.begin` began, for its `finish` and for nothing else."""


class LivePolicy(Protocol):
    """The policy with the weights it has now."""

    def sample(
        self,
        step: int,
        prompts: Sequence[Example],
        *,
        answers: int = 1,
        temperature: float = 1.0,
        max_new_tokens: int | None = None,
    ) -> list[list[Rollout]]:
        """`answers` answers to each prompt, in the order of the prompts; temperature 0 is greedy.

        Every process calls it with the same prompts, computes a share of the answers and gets all of them. The draws
        depend on (the run's seed, step, row, n, position) alone: neither batching nor the number of processes nor a
        resumption changes them. Without dropout and gradients; measured as the phase `generate`.

        Raises `BadInput` for a model that writes no answers, under a strategy that cannot sample, and when
        `max_new_tokens` fills the window.
        """
        ...

    def begin(
        self,
        step: int,
        prompts: Sequence[Example],
        *,
        answers: int = 1,
        temperature: float = 1.0,
        max_new_tokens: int | None = None,
    ) -> Begun:
        """`sample` without waiting, with the weights of now. An engine in a process of its own keeps running meanwhile;
        another sampling waits until this one is through."""
        ...

    def finish(self, begun: Begun) -> list[list[Rollout]]:
        """The answers, once."""
        ...


@dataclass(frozen=True)
class SourceContext:
    """What a batch source may use. `train` and `held_out` are the rows as the method's `example` made them, from the
    first batch on with the log-probs of frozen models. `passes` ask the live weights and frozen models about others.
    `sampler` is there for methods whose config is an `OnlineConfig`. `keep_group` takes the answers to a prompt of an
    optimiser step, counted from 1, to be read by people. `further_data`: by name, the training rows of the spec's
    further datasets that the config uses. `reward_access`: what rewards from outside may reach. `started_as`: by name
    of a model that learns with the main one, the role of what it started from. `mixed`: activations are in bf16.
    """

    train: Sequence[Example]
    held_out: Sequence[Example]
    renderer: Renderer
    sampler: LivePolicy | None
    phases: Phases
    passes: Passes
    keep_group: Callable[[int, AnswerGroup], None] | None = None
    reward_access: RewardAccess = field(default_factory=RewardAccess)
    further_data: Mapping[str, Sequence[Example]] = field(default_factory=dict)
    started_as: Mapping[str, ModelRole] = field(default_factory=dict)
    mixed: bool = False

    @property
    def policy(self) -> LivePolicy:
        if self.sampler is None:
            raise TypeError("a method that samples from its own weights needs a config derived from OnlineConfig")
        return self.sampler


class RolloutSource(BatchSource):
    """The base of sources that sample: `config.batch` prompts a step, in the order of a list. Subclasses give `batch`.

    `responses`: how many of a prompt's answers an example has.
    """

    responses = 1

    def __init__(self, context: SourceContext, config: OnlineConfig) -> None:
        self.context = context
        self.config = config
        self._order = Order(len(context.train), config.batch, config.epochs, config.seed)
        self.steps = self._order.steps

    def prompts(self, step: int) -> list[Example]:
        """The prompts of step `step`: examples without responses."""
        return [self.context.train[i] for i in self._order.step(step)]

    def sample(self, step: int, prompts: Sequence[Example]) -> list[list[Rollout]]:
        """The config's number of answers to each prompt."""
        return self.context.policy.sample(step, prompts, **self._how)

    def begin(self, step: int, prompts: Sequence[Example]) -> Begun:
        """`sample` without waiting."""
        return self.context.policy.begin(step, prompts, **self._how)

    @property
    def _how(self) -> dict[str, Any]:
        config = self.config
        return {
            "answers": config.answers,
            "temperature": config.temperature,
            "max_new_tokens": config.max_new_tokens,
        }

    def rehearsal(self) -> list[Sequence[Example]]:
        """The longest prompts, each with answers that nothing ends before their limit."""
        longest = sorted(self.context.train, key=lambda e: -len(e.prompt))[: self.config.batch]
        room = answer_room(self.context.renderer.max_length, self.config.max_new_tokens)
        return [[self._filled(prompt, room) for prompt in longest]]

    def _filled(self, prompt: Example, room: int) -> Example:
        return replace(prompt, responses=(np.resize(prompt.prompt, room),) * self.responses)
