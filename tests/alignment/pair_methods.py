"""Methods that learn from pairs, as their tests call them."""

from __future__ import annotations

import math

import torch

from steerboard_contracts.methods import method_of, needed_method
from steerboard_workers.alignment.methods import training_of

METHODS = ["dpo", "ipo", "cdpo", "robust_dpo", "hinge", "mpo", "simpo", "orpo"]
REFERENCED = [name for name in METHODS if method_of(name).frozen]
LN_2 = math.log(2)


def method(name: str, **config):
    return training_of(needed_method(name).config(method=name, **config))


def loss(name: str, chosen: float, rejected: float, **config) -> float:
    scores = torch.tensor([[chosen], [rejected]], dtype=torch.float64)
    return method(name, **config).loss(*scores).item()


class Batch:
    """Chosen and rejected responses by turns."""

    def __init__(self, lengths: list[int], reference: list[float] | None = None) -> None:
        self.response_lengths = self.label_counts = torch.tensor(lengths, dtype=torch.float32)
        self.frozen_log_probs = {} if reference is None else {"reference": torch.tensor(reference)}
