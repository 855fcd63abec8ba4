"""Routers of a mixture of experts: where a model has them, what they chose in a forward pass, and how another choice
replaces theirs."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from steerboard_workers.alignment.modules import body_of
from steerboard_workers.alignment.replay import Routes, replayed, replays

_LAYER = re.compile(r"\blayers\.(\d+)\.")


class Routers:
    """The routers of one model, by the order of their layers."""

    def __init__(self, found: list[tuple[str, nn.Module, int]], gives_loss: bool) -> None:
        self.modules = [router for _, router, _ in found]
        self.layers = [_layer_of(name) for name, _, _ in found]
        self.gives_loss = gives_loss
        self._into: list[Routes] | None = None
        self._routes: Tensor | None = None
        for name, router, index in found:
            router.register_forward_hook(self._hook(router, index, _layer_of(name)))

    @classmethod
    def of(cls, model: nn.Module) -> Routers | None:
        """Returns None for a model without routers, or with such that transformers cannot record."""
        found = routers_of(model)
        return cls(found, has_loss(model)) if found else None

    @property
    def replays(self) -> bool:
        """Whether another choice can replace theirs."""
        return all(replays(router) for router in self.modules) and min(self.layers) >= 0

    def freeze(self) -> None:
        for router in self.modules:
            router.requires_grad_(False)

    def replay(self, routes: Tensor | None) -> None:
        """See `Replaying`."""
        self._routes = routes

    @contextlib.contextmanager
    def recording(self) -> Iterator[list[Routes]]:
        """The routes of forward passes inside of it, without what checkpointing computes again in a backward pass."""
        self._into = []
        try:
            yield self._into
        finally:
            self._into = None

    def _hook(self, router: nn.Module, index: int, layer: int) -> Any:
        def record(_: nn.Module, __: Any, output: Any) -> Any:
            if not isinstance(output, tuple):
                return None
            if self._routes is not None:
                return self._replayed(router, self._routes[layer], output)
            if self._into is None:
                return None
            logits = output[index]
            chosen = [
                part
                for part in output
                if isinstance(part, Tensor) and part.dtype is torch.int64 and part.shape[:-1] == logits.shape[:-1]
            ]
            # Llama 4's router does not return what it chose.
            if chosen:
                self._into.append(Routes(logits.flatten(0, -2), chosen[0].flatten(0, -2)))
            return None

        return record

    def _replayed(self, router: nn.Module, routes: Tensor, output: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        logits, _, own = output
        weights, chosen = replayed(router, logits, own, routes)
        if self._into is not None:
            self._into.append(Routes(logits, chosen, routes[:, 0] >= 0, own))
        return logits, weights, chosen


def routers_of(model: nn.Module) -> list[tuple[str, nn.Module, int]]:
    """(name, module, place of the logits in what it returns) of each router, as transformers records them."""
    recorded = (getattr(body_of(model), "_can_record_outputs", None) or {}).get("router_logits")
    recorders = [recorder for recorder in (recorded if isinstance(recorded, list) else [recorded]) if recorder]
    return [
        (name, module, recorder.index)
        for name, module in model.named_modules()
        for recorder in recorders
        if isinstance(module, recorder.target_class) and (recorder.layer_name or "") in name
    ]


def has_loss(model: nn.Module) -> bool:
    """Whether transformers defines a load-balancing loss for the architecture. DeepSeek's and GLM's have none: their
    pretraining balances by a bias, which no gradient reaches."""
    return hasattr(sys.modules[type(model).__module__], "load_balancing_loss_func")


def _layer_of(name: str) -> int:
    found = _LAYER.search(name)
    return int(found[1]) if found else -1
