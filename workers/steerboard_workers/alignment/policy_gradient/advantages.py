"""How much better an answer, or a token of it, was than expected. Numbers without gradient, in float64.

Rewards of a group are the rewards of n answers to one prompt. NaN is an answer that could not be scored: it is left
out of every mean, and its advantage is NaN. A group with fewer than two scored answers has nothing to compare, so all
its advantages are NaN: who uses them leaves these answers out, and never counts them as 0.

Everything that is whitened is whitened over the global batch, so its split into micro-batches or processes is not a
part of the result.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steerboard_contracts.errors import BadInput

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# What keeps the division by a standard deviation finite. Groups whose rewards are all equal have advantage 0 anyway.
EPS = 1e-6


def centred(rewards: ArrayLike) -> Floats:
    """r - mean, of rewards (groups, n): arXiv 2503.20783. Raises `BadInput` (`one_answer`)."""
    return _centred(_groups(rewards))


def standardised(rewards: ArrayLike, *, eps: float = EPS) -> Floats:
    """(r - mean) / (std + eps) of rewards (groups, n) with the unbiased standard deviation of each group:
    arXiv 2402.03300. 0 in a group of equal rewards. Raises `BadInput` (`one_answer`)."""
    return _standardised(_groups(rewards), eps)


def batch_standardised(rewards: ArrayLike, *, eps: float = EPS) -> Floats:
    """(r - mean) / (std + eps) of rewards (groups, n), with the mean of each group and the unbiased standard deviation
    of all rewards: arXiv 2508.08221. 0 where all are equal. Raises `BadInput` (`one_answer`)."""
    given = _groups(rewards)
    known = given[~np.isnan(given)]
    spread = float(known.std(ddof=1)) if len(known) > 1 else 0.0
    return _centred(given) / (spread + eps)


def leave_one_out(rewards: ArrayLike) -> Floats:
    """r less the mean of the other k - 1 scored answers = k / (k - 1) (r - mean), of rewards (groups, n):
    arXiv 2402.14740. Never divided by a standard deviation, or the gradient is no longer that of the expected reward.
    Raises `BadInput` (`one_answer`)."""
    given = _groups(rewards)
    scored = _scored(given)
    return _centred(given) * (scored / np.maximum(scored - 1, 1))


def decoupled(rewards: Sequence[ArrayLike], weights: Sequence[float], *, eps: float = EPS) -> Floats:
    """Advantages from several rewards, each (groups, n): each standardised within its group, weighted, added, and the
    sums whitened over the batch: arXiv 2601.05242.

    An answer that one of the rewards could not score is left out of all: its sum would not compare with the others'.
    Raises `BadInput` (`one_answer`); ValueError unless there is one weight for each reward.
    """
    if not rewards or len(rewards) != len(weights):
        raise ValueError(f"{len(rewards)} rewards with {len(weights)} weights")
    given = [_groups(source) for source in rewards]
    unscored = np.isnan(given).any(axis=0)
    kept = [np.where(unscored, np.nan, source) for source in given]
    total = sum(
        (w * _standardised(source, eps) for w, source in zip(weights, kept, strict=True)), np.zeros_like(given[0])
    )
    return whiten(total, eps=eps)


def whiten(values: ArrayLike, mask: ArrayLike | None = None, *, shift: bool = True, eps: float = EPS) -> Floats:
    """(x - mean) / (std + eps) over all values of the global batch together, of any shape, by the unbiased standard
    deviation. Values outside of `mask` and NaN count for nothing and come out as they are. `shift` False keeps the
    mean. Equal values, and a single one, have no spread: they come out as 0, or as their mean.
    """
    x = np.array(values, dtype=np.float64)
    inside = ~np.isnan(x) if mask is None else np.asarray(mask, dtype=bool) & ~np.isnan(x)
    known = x[inside]
    if not len(known):
        return x
    mean = known.mean()
    spread = np.zeros_like(known) if np.ptp(known) == 0 else (known - mean) / (known.std(ddof=1) + eps)
    x[inside] = spread if shift else spread + mean
    return x


def token_returns(rewards: ArrayLike, mask: ArrayLike, gamma: float = 1.0) -> Floats:
    """G_t = r_t + gamma G_(t+1), of rewards (B, T) of single tokens: arXiv 2501.03262 whitens these over
    all tokens of the batch. `mask` (B, T) marks the tokens of answers; the others have return 0 and pass on nothing."""
    given, inside = _tokens(rewards, mask)
    returns = np.zeros_like(given)
    later = np.zeros(given.shape[:-1])
    for t in range(given.shape[-1] - 1, -1, -1):
        later = np.where(inside[..., t], given[..., t] + gamma * later, later)
        returns[..., t] = np.where(inside[..., t], later, 0.0)
    return returns


def gae(
    rewards: ArrayLike, values: ArrayLike, mask: ArrayLike, gamma: float = 1.0, lambda_: float = 0.95
) -> tuple[Floats, Floats]:
    """(advantages, returns), each (B, T), by generalised advantage estimation, Eq. 16 of arXiv 1506.02438:
    delta_t = r_t + gamma V_(t+1) - V_t and A_t = delta_t + gamma lambda A_(t+1).

    rewards and values (B, T): V_t is of the state before token t. `mask` marks the tokens of answers; the others have
    0 and are skipped. The last token of every answer is terminal, also where a limit cut the answer: V after it is 0.
    returns = A + V, what the critic learns, come before any whitening of A.
    """
    given, inside = _tokens(rewards, mask)
    v = np.where(inside, np.asarray(values, dtype=np.float64), 0.0)
    advantages = np.zeros_like(given)
    next_value = np.zeros(given.shape[:-1])
    later = np.zeros(given.shape[:-1])
    for t in range(given.shape[-1] - 1, -1, -1):
        here = inside[..., t]
        delta = given[..., t] + gamma * next_value - v[..., t]
        later = np.where(here, delta + gamma * lambda_ * later, later)
        next_value = np.where(here, v[..., t], next_value)
        advantages[..., t] = np.where(here, later, 0.0)
    return advantages, advantages + v


def padded(rows: Sequence[ArrayLike]) -> tuple[Floats, Mask]:
    """(values (B, T), mask (B, T)) of rows of different lengths, padded on the right with 0."""
    given = [np.asarray(row, dtype=np.float64) for row in rows]
    lengths = np.array([len(row) for row in given], dtype=np.int64)
    mask = np.arange(lengths.max(initial=0)) < lengths[:, None]
    values = np.zeros(mask.shape)
    values[mask] = np.concatenate(given) if given else []
    return values, mask


def _groups(rewards: ArrayLike) -> Floats:
    given = np.array(rewards, dtype=np.float64)
    if given.ndim != 2:
        raise ValueError(f"rewards of groups are (groups, n), and these have the shape {given.shape}")
    if given.shape[1] < 2:
        raise BadInput(
            "Advantages of a group compare the answers to one prompt, but each prompt has only one",
            code="one_answer",
            hint="Sample at least two answers to each prompt.",
        )
    if np.isinf(given).any():
        raise BadInput("A reward is infinite", code="bad_reward", hint="Leave an answer out by giving it NaN.")
    return given


def _scored(rewards: Floats) -> Floats:
    scored: Floats = (~np.isnan(rewards)).sum(axis=1, keepdims=True).astype(np.float64)
    return scored


def _centred(rewards: Floats) -> Floats:
    scored = _scored(rewards)
    mean = np.nansum(rewards, axis=1, keepdims=True) / np.maximum(scored, 1)
    # By the rewards themselves: the mean of equal ones differs from them by rounding, which a small std would blow up.
    tied = np.nan_to_num(rewards, nan=-np.inf).max(axis=1) == np.nan_to_num(rewards, nan=np.inf).min(axis=1)
    apart = np.where(tied[:, None], rewards * 0, rewards - mean)
    return np.where(scored < 2, np.nan, apart)


def _standardised(rewards: Floats, eps: float) -> Floats:
    if eps <= 0:
        raise ValueError(f"eps is {eps}, and must be positive")
    apart = _centred(rewards)
    variance = np.nansum(apart**2, axis=1, keepdims=True) / np.maximum(_scored(rewards) - 1, 1)
    scaled: Floats = apart / (np.sqrt(variance) + eps)
    return scaled


def _tokens(rewards: ArrayLike, mask: ArrayLike) -> tuple[Floats, Mask]:
    inside = np.asarray(mask, dtype=bool)
    return np.where(inside, np.asarray(rewards, dtype=np.float64), 0.0), inside
