"""The answers of one sampling as arrays: what advantages are computed from, and what is worth seeing of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from steerboard_workers.alignment.rollouts import Rollout

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Answers:
    """n answers to each of G prompts. rewards (G, n), NaN where there is none; log_ratios: of each answer in turn, (T,)
    log pi - log pi_ref of its tokens, 0 where the KL is not part of the reward. sources: by name, (G, n) of each reward
    by itself, NaN where `rewards` are; weights: what each is multiplied with. moments: the mean that was taken from the
    weighted sum, and the sd that it was divided by. early: of each answer in turn, (T,) what turns before the last were
    worth; empty where answers have one turn."""

    rewards: Floats
    log_ratios: Sequence[Floats]
    sources: Mapping[str, Floats] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    moments: tuple[float, float] = (0.0, 1.0)
    early: Sequence[Floats] = ()

    @property
    def placed(self) -> list[Floats]:
        """The rewards of each answer's tokens, (T,): what an earlier turn was worth with the last token of its answer,
        and everything else with the last one."""
        placed = [early / self.moments[1] for early in self.early] or [np.zeros(len(r)) for r in self.log_ratios]
        for of_tokens, reward in zip(placed, self.rewards.reshape(-1), strict=True):
            of_tokens[-1] += reward - of_tokens.sum()
        return placed

    def penalised(self, kl_weight: float) -> Floats:
        """(G, n): the reward less kl_weight times the log-ratio of the whole answer, the estimate k1 of the KL."""
        of_answers = np.array([ratios.sum() for ratios in self.log_ratios]).reshape(self.rewards.shape)
        penalised: Floats = self.rewards - kl_weight * of_answers
        return penalised

    def spread(self, advantages: Floats) -> list[Floats]:
        """One advantage (G, n) an answer to all its tokens."""
        flat = advantages.reshape(-1)
        return [np.full(len(ratios), advantage) for ratios, advantage in zip(self.log_ratios, flat, strict=True)]


def equal_groups(rewards: Floats) -> NDArray[np.bool_]:
    """(G,): whether all answers with a reward have the same one. rewards (G, n)."""
    low = np.nan_to_num(rewards, nan=np.inf).min(axis=1)
    high = np.nan_to_num(rewards, nan=-np.inf).max(axis=1)
    return np.asarray(low >= high)


def length_metrics(rollouts: Sequence[Rollout], advantages: Sequence[Floats]) -> dict[str, float]:
    """Mean lengths in tokens, also of the answers whose mean advantage is positive or negative: where a loss prefers
    short or long answers, these two part. advantages: of each answer (tokens,)."""
    lengths = np.array([len(rollout.ids) for rollout in rollouts], dtype=np.float64)
    means = np.array([advantage.mean() for advantage in advantages])
    metrics = {"length": float(lengths.mean()), "ended": float(np.mean([rollout.finished for rollout in rollouts]))}
    for name, chosen in (("positive", means > 0), ("negative", means < 0)):
        if chosen.any():
            metrics[f"length_{name}"] = float(lengths[chosen].mean())
    return metrics
