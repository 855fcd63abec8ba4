"""The experts of every token of the answers that a decode loop draws, prompts included."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from steerboard_workers.alignment.examples import ChosenExperts
from steerboard_workers.alignment.replay import Replaying, Routes

# The most experts that eight bits tell apart; vLLM sends as few.
_NARROW = 256


class RouteTrace:
    """Routes of answers by their places, until they are taken."""

    def __init__(self, routers: Replaying) -> None:
        self._routers = routers
        self._pieces: dict[int, list[ChosenExperts]] = {}

    @contextlib.contextmanager
    def following(self, rows: Sequence[Sequence[int]], mask: Tensor, tokens: int) -> Iterator[None]:
        """Takes down a forward pass over the last `tokens` columns of mask (B, T): `rows` has the places of the answers
        to which each of the B rows belongs, none for one that has ended."""
        with self._routers.recording() as routes:
            yield
        experts = self._stacked(routes, len(rows))
        lengths = mask[:, -tokens:].sum(1).tolist()
        for own, places, length in zip(experts, rows, lengths, strict=True):
            for place in places:
                self._pieces.setdefault(place, []).append(own[tokens - length :])

    def take(self, place: int) -> ChosenExperts:
        """(tokens, layers, k) of the prompt and of all tokens of the answer but the last, which the model never read;
        zeros in layers without experts."""
        return np.concatenate(self._pieces.pop(place))

    def _stacked(self, routes: Sequence[Routes], rows: int) -> ChosenExperts:
        """(B, tokens, layers, k)."""
        layers = self._routers.layers
        assert len(routes) == len(layers), f"{len(routes)} of {len(layers)} routers were seen"
        chosen = torch.stack([layer.chosen for layer in routes], dim=1).cpu().numpy()
        dtype = np.uint8 if routes[0].logits.shape[-1] <= _NARROW else np.int16
        whole = np.zeros((len(chosen), max(layers) + 1, chosen.shape[-1]), dtype=dtype)
        whole[:, layers] = chosen
        return whole.reshape(rows, -1, *whole.shape[1:])
