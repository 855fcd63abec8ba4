"""What a run that learns from pairs, or from answers with a thumb, keeps of some of them at each evaluation: a folder
with an index and step files. While it runs, it reports those of the newest step one by one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from steerboard_contracts.samples import Finite, Split

INDEX_FILE = "index.json"
# The most tokens of an answer whose log-ratios are kept, and the most steps of a run; older ones are thinned out.
MOST_TOKENS = 512
MOST_STEPS = 24

InspectPairs = Annotated[
    int,
    Field(
        ge=0,
        le=256,
        description="Pairs of each split, or answers with a thumb, whose rewards and log-ratios are kept at every "
        "evaluation, to be read; 0: none.",
    ),
]


def step_file(step: int) -> str:
    return f"step-{step:08d}.json"


class InspectedPair(BaseModel):
    """`row` of the dataset that was trained on. `chosen` and `rejected`: the texts of an answer's first tokens, empty
    for a token that completes a character with the next one. A single answer is `chosen` where it is desirable and
    `rejected` where it is not; the other is None."""

    row: int
    split: Split
    chosen: list[str] | None
    rejected: list[str] | None


class PairsIndex(BaseModel):
    """`compared_with`: whose log-probs the log-ratios are relative to: the reference, or the model that training
    started from where a method has none. None: the method gives rewards only."""

    method: str
    compared_with: Literal["reference", "start"] | None
    pairs: list[InspectedPair]
    steps: list[int]


class StepPairs(BaseModel):
    """The figures of each pair of the index, in its order: rewards as the run's metrics have them, and the log-ratio of
    each token that the index has, in nats. The reward of a single answer is its log-ratio, without beta."""

    step: int
    chosen_rewards: list[Finite | None]
    rejected_rewards: list[Finite | None]
    chosen_log_ratios: list[list[Finite]]
    rejected_log_ratios: list[list[Finite]]


class LivePair(BaseModel):
    """One pair of the newest step: of the index and of the step what is about it."""

    compared_with: Literal["reference", "start"] | None
    pair: InspectedPair
    chosen_reward: Finite | None
    rejected_reward: Finite | None
    chosen_log_ratios: list[Finite]
    rejected_log_ratios: list[Finite]
