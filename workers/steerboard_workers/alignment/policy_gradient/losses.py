"""Losses of single tokens (N,), and how those of a batch become one number.

Reducing is a sum over what a micro-batch has, divided by a count of the *global* batch that the training loop knows
before any forward pass: so no split of the batch changes the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from steerboard_workers.alignment.losses import sequence_sums
from steerboard_workers.alignment.policy_gradient.kl import clamped

Reducer = Literal["token", "sequence", "constant"]


def ratios(log_probs: Tensor, old: Tensor) -> Tensor:
    """rho = pi / pi_old of each token (N,), its logarithm clamped to +-20."""
    return clamped(log_probs - old).exp()


def sequence_ratios(log_probs: Tensor, old: Tensor, counts: Tensor) -> Tensor:
    """(N,) s = exp(mean log-ratio of the sequence that a token is in), Eq. 7 of arXiv 2507.18071, with the gradient of
    the token alone, Eq. 14: sg(s) pi / sg(pi). Where the advantages of a sequence's tokens are equal, objective, clip
    and gradient are those of Eq. 5; where they differ, each token still has its own. counts (S,): tokens of each
    sequence, which follow each other."""
    lengths = counts.long()
    means = sequence_sums((log_probs - old).detach(), counts) / counts.clamp(min=1)
    of_sequences = clamped(means).exp().repeat_interleave(lengths, output_size=len(log_probs))
    return of_sequences * (log_probs - log_probs.detach()).exp()


def value_loss(values: Tensor, returns: Tensor, old: Tensor | None = None, clip: float | None = None) -> Tensor:
    """(V - G)^2 / 2 of each token (N,). With `clip`, the larger one of this and that of V within +-clip of the value
    `old` before the update: of the first implementation of arXiv 1707.06347, no part of the paper."""
    loss = (values - returns).square() / 2
    if clip is None or old is None:
        return loss
    near = old + (values - old).clamp(-clip, clip)
    return torch.maximum(loss, (near - returns).square() / 2)


def reduced(losses: Tensor, counts: Tensor, reducer: Reducer, length: int | None = None) -> Tensor:
    """The sum of a micro-batch, to be divided by `reduced_count` of the global batch. losses (N,) of tokens; counts
    (S,) tokens of each sequence, which follow each other.

    token: every token counts the same. sequence: the mean of each sequence; a token of a long answer counts less.
    constant: sums of sequences over a constant `length`, arXiv 2503.20783.
    """
    if reducer == "token":
        return losses.sum()
    if reducer == "constant":
        if not length:
            raise ValueError("the constant reducer needs the length to divide by")
        return losses.sum() / length
    return (sequence_sums(losses, counts) / counts.clamp(min=1)).sum()


def reduced_count(counts: Sequence[float], reducer: Reducer) -> float:
    """What the loss of a global batch is divided by: its tokens, or its sequences. counts: tokens of each sequence."""
    return float(sum(counts)) if reducer == "token" else float(len(counts))
