"""Supervised fine-tuning: Eq. 1 of arXiv 2308.12050, -sum log pi(y | x)."""

from __future__ import annotations

from steerboard_contracts.methods.sft import SftConfig
from steerboard_workers.alignment.training_method import TrainingMethod


class Sft(TrainingMethod[SftConfig]):
    """All rows alike."""
