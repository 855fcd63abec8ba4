"""Rejection sampling: SFT on the best of several answers (RAFT, arXiv 2304.06767, Algorithm 1)."""

from __future__ import annotations

from steerboard_contracts.methods.raft import RaftConfig
from steerboard_workers.alignment.training_method import TrainingMethod


class Raft(TrainingMethod[RaftConfig]):
    """All rows alike: the answers were selected before."""
