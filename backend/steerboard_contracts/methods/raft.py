"""Rejection sampling: SFT on the best of several answers (RAFT, arXiv 2304.06767, Algorithm 1)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.specs.method import MethodSpec
from steerboard_contracts.training import TrainingConfig


class RaftConfig(TrainingConfig):
    """SFT on the answers that a `select` run kept: Algorithm 1 of arXiv 2304.06767."""

    method: Annotated[Literal["raft"], Field(description="The training method.")]


SPEC = MethodSpec(
    name="raft",
    title="Rejection sampling (RAFT)",
    label="RAFT",
    about="Learn the best of several answers to each prompt, which a select run kept.",
    source="arXiv 2304.06767, Algorithm 1",
    config=RaftConfig,
    training="steerboard_workers.alignment.methods.raft:Raft",
    data=("instructions",),
    use="Learn these answers as the best of several",
    outputs=("policy",),
    place=90,
)
