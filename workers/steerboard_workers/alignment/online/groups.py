"""The answers to one prompt of a sampling, as people read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.online.answer_groups import (
    MOST_ANSWERS,
    MOST_CHARACTERS,
    MOST_TOKENS,
    AnswerGroup,
    GroupAnswer,
    GroupMessage,
    GroupTurn,
)
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.rollouts import Rollout, TurnOfRollout
from steerboard_workers.alignment.token_texts import token_texts

Floats = NDArray[np.float64]
_CUT = "\u2026"


@dataclass(frozen=True)
class Sampling:
    """The results of sampling n answers to each of G prompts, in their order: `sources` by name (G n,), `rewards` (G,
    n) as they are learned from, `advantages` and, unless there is no reference, `log_ratios` of the tokens of each
    (T,). tied (G,): of which prompts the answers teach nothing."""

    rollouts: Sequence[Rollout]
    sources: Mapping[str, Floats]
    rewards: Floats
    advantages: Sequence[Floats]
    log_ratios: Sequence[Floats]
    tied: NDArray[np.bool_]


def answer_group(place: int, prompt: Example, sampling: Sampling, tokenizer: Any) -> AnswerGroup:
    """The group of the prompt at `place` of the sampling. Its answers by reward, best first; those without one last."""
    rewards = sampling.rewards[place]
    n = len(rewards)
    order = sorted(range(n), key=lambda index: (np.isnan(rewards[index]), -np.nan_to_num(rewards[index]), index))
    read = tokenizer.decode([int(token) for token in prompt.prompt], skip_special_tokens=False)
    return AnswerGroup(
        place=place,
        row=prompt.row,
        prompt=read if len(read) <= MOST_CHARACTERS else _CUT + read[-MOST_CHARACTERS:],
        sampled=n,
        tied=bool(sampling.tied[place]),
        answers=[_answer(place * n + index, sampling, tokenizer) for index in order[:MOST_ANSWERS]],
    )


def _answer(at: int, sampling: Sampling, tokenizer: Any) -> GroupAnswer:
    rollout, advantages = sampling.rollouts[at], sampling.advantages[at]
    ratios = sampling.log_ratios[at] if len(sampling.log_ratios) else None
    # Most methods give all tokens of an answer the same one.
    by_token = not np.isnan(advantages).any() and len(set(advantages.tolist())) > 1
    return GroupAnswer(
        n=rollout.n,
        text=rollout.text[:MOST_CHARACTERS],
        tokens=len(rollout.ids),
        finished=rollout.finished,
        reward=_known(sampling.rewards.reshape(-1)[at]),
        sources={name: _known(values[at]) for name, values in sampling.sources.items()},
        advantage=_known(advantages.mean()),
        kl=None if ratios is None else _known(ratios.sum()),
        texts=token_texts(tokenizer, rollout.ids[:MOST_TOKENS]),
        log_ratios=[] if ratios is None else _rounded(ratios),
        advantages=_rounded(advantages) if by_token else [],
        turns=[_turn(turn) for turn in rollout.turns],
        ended_by_environment=rollout.ended,
    )


def _turn(turn: TurnOfRollout) -> GroupTurn:
    said = [GroupMessage(role=each["role"], content=each["content"][:MOST_CHARACTERS]) for each in turn.observation]
    return GroupTurn(
        text=turn.text[:MOST_CHARACTERS],
        tokens=turn.tokens,
        reward=None if turn.reward is None else _known(turn.reward),
        observation=said,
    )


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _rounded(values: Floats) -> list[float]:
    return [round(float(value), 4) for value in np.nan_to_num(values[:MOST_TOKENS])]
