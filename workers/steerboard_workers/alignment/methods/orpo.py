"""Odds ratio preference optimisation: Eq. 6 of arXiv 2403.07691."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from steerboard_contracts.methods.orpo import OrpoConfig
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.pairs import PairMethod, Responses

# The least that a log-prob is below 0, where float32 would round it to 0 and its odds to infinity.
LEAST = 1e-12


class Orpo(PairMethod[OrpoConfig]):
    """SFT on the chosen side - beta log sigma(log odds_w - log odds_l), odds = p / (1 - p) of p = exp(m)."""

    def learned(self, example: Example) -> Example:
        learned = np.ones(len(example.prompt), dtype=bool)
        learned[0] = False  # nothing precedes the first token that could predict it
        return replace(example, prompt_supervised=learned if self.config.sft_on == "sequence" else None)

    def score(self, responses: Responses) -> Tensor:
        return log_odds(responses.means)

    def loss(self, chosen: Tensor, rejected: Tensor) -> Tensor:
        return -self.config.beta * F.logsigmoid(chosen - rejected)

    def sft(self, responses: Responses) -> Tensor:
        sums, lengths = responses.log_probs + responses.before, responses.lengths + responses.before_lengths
        return -sums / lengths

    @property
    def sft_weight(self) -> float:
        return 1.0

    @property
    def scale(self) -> float:
        return self.config.beta


def log_odds(log_prob: Tensor) -> Tensor:
    """log(p / (1 - p)) of log p of any shape, finite and with finite gradients for every log p <= 0."""
    below = log_prob.clamp(max=-LEAST)
    # log(1 - p), each half where the other loses digits; both get values at which they are finite.
    near = below > -math.log(2)
    small, large = torch.where(near, below, -1.0), torch.where(near, -1.0, below)
    rest = torch.where(near, torch.log(-torch.expm1(small)), torch.log1p(-torch.exp(large)))
    return below - rest
