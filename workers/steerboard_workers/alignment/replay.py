"""Rollout routing replay (R3, arXiv 2510.11370): a router sends tokens where the sampler of an answer sent them, and
weighs these experts by its own logits.

The gate of the paper is the softmax over the replayed experts. Here it is whatever the model makes of the experts
that it chose itself, so that routes of its own change nothing: for Mixtral this is that softmax, and for models whose
`norm_topk_prob` is false the probabilities among all experts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

Gate = Callable[[Any, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Routes:
    """One layer's routes. logits (T, E) with gradient, one row for each position of the pass; chosen (T, k) int64.
    Where some were replayed: which ones (T,) bool, and what the router would have chosen itself (T, k) int64."""

    logits: Tensor
    chosen: Tensor
    replayed: Tensor | None = None
    own: Tensor | None = None


class Replaying(Protocol):
    """Routers that take a choice from outside, and whose own one can be recorded."""

    @property
    def layers(self) -> Sequence[int]:
        """The layers of the model that have a router."""
        ...

    def replay(self, routes: Tensor | None) -> None:
        """Sends tokens of all passes that follow to these experts (L, T, k) int64 of all layers of the model, -1 for
        the router's own choice; None for its own everywhere. What a backward pass computes again follows them, too."""
        ...

    def recording(self) -> AbstractContextManager[list[Routes]]:
        """The routes of forward passes inside of it."""
        ...


def _softmax(router: Any, logits: Tensor, chosen: Tensor) -> Tensor:
    probabilities = logits.float().softmax(-1).gather(1, chosen)
    return probabilities / probabilities.sum(-1, keepdim=True)


def _softmax_of_dtype(router: Any, logits: Tensor, chosen: Tensor) -> Tensor:
    probabilities = logits.softmax(-1, dtype=torch.float).gather(1, chosen)
    if router.norm_topk_prob:
        probabilities = probabilities / probabilities.sum(-1, keepdim=True)
    return probabilities.to(logits.dtype)


# By the class of the router: the weights (T, k) of the experts `chosen` (T, k), to the last bit those of its own pass.
GATES: dict[str, Gate] = {
    "MixtralTopKRouter": _softmax,
    "OlmoeTopKRouter": _softmax_of_dtype,
    "Qwen2MoeTopKRouter": _softmax_of_dtype,
    "Qwen3MoeTopKRouter": _softmax_of_dtype,
}


def replays(router: nn.Module) -> bool:
    """Whether its gate is known."""
    return type(router).__name__ in GATES


def replayed(router: nn.Module, logits: Tensor, own: Tensor, routes: Tensor) -> tuple[Tensor, Tensor]:
    """(weights (T, k), chosen (T, k)) of `routes` (T, k), which are -1 where the router keeps what it chose, `own`."""
    chosen = torch.where(routes >= 0, routes, own)
    return GATES[type(router).__name__](router, logits, chosen), chosen


def differing(own: Tensor, chosen: Tensor, known: Tensor) -> Tensor:
    """(T,) bool: whether two sets of experts (T, k) differ, among the tokens that were replayed, `known` (T,)."""
    return known & (own.sort(-1).values != chosen.sort(-1).values).any(-1)


def share_differing(counts: Sequence[float]) -> float:
    """The share of tokens, over all layers, that differ; counts are (differing, replayed)."""
    return counts[0] / counts[1] if counts[1] else 0.0
