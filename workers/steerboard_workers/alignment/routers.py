"""Routers of a mixture of experts: where a model has them, and what they chose in a forward pass."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from steerboard_workers.alignment.modules import body_of


@dataclass(frozen=True)
class Routes:
    """One layer's routes. logits (T, E) with gradient, one row for each position of the pass; chosen (T, k) int64."""

    logits: Tensor
    chosen: Tensor


class Routers:
    """The routers of one model, by the order of their layers."""

    def __init__(self, found: list[tuple[nn.Module, int]], gives_loss: bool) -> None:
        self.modules = [router for router, _ in found]
        self.gives_loss = gives_loss
        self._into: list[Routes] | None = None
        for router, index in found:
            router.register_forward_hook(self._hook(index))

    @classmethod
    def of(cls, model: nn.Module) -> Routers | None:
        """Returns None for a model without routers, or with such that transformers cannot record."""
        found = routers_of(model)
        return cls(found, has_loss(model)) if found else None

    def freeze(self) -> None:
        for router in self.modules:
            router.requires_grad_(False)

    @contextlib.contextmanager
    def recording(self) -> Iterator[list[Routes]]:
        """The routes of forward passes inside of it, without what checkpointing computes again in a backward pass."""
        self._into = []
        try:
            yield self._into
        finally:
            self._into = None

    def _hook(self, index: int) -> Any:
        def record(_: nn.Module, __: Any, output: Any) -> None:
            if self._into is None or not isinstance(output, tuple):
                return
            logits = output[index]
            chosen = [
                part
                for part in output
                if isinstance(part, Tensor) and part.dtype is torch.int64 and part.shape[:-1] == logits.shape[:-1]
            ]
            # Llama 4's router does not return what it chose.
            if chosen:
                self._into.append(Routes(logits.flatten(0, -2), chosen[0].flatten(0, -2)))

        return record


def routers_of(model: nn.Module) -> list[tuple[nn.Module, int]]:
    """Each router of a model, and the place of the logits in what it returns, as transformers records them."""
    recorded = (getattr(body_of(model), "_can_record_outputs", None) or {}).get("router_logits")
    recorders = [recorder for recorder in (recorded if isinstance(recorded, list) else [recorded]) if recorder]
    return [
        (module, recorder.index)
        for name, module in model.named_modules()
        for recorder in recorders
        if isinstance(module, recorder.target_class) and (recorder.layer_name or "") in name
    ]


def has_loss(model: nn.Module) -> bool:
    """Whether transformers defines a load-balancing loss for the architecture. DeepSeek's and GLM's have none: their
    pretraining balances by a bias, which no gradient reaches."""
    return hasattr(sys.modules[type(model).__module__], "load_balancing_loss_func")
