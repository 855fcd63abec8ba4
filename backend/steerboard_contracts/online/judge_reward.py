"""A judge of an evaluation as a reward of a run's own answers. `evaluation.reward_judges` asks it."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from steerboard_contracts.fields import Config, Count
from steerboard_contracts.pinned_endpoint import PinnedEndpoint
from steerboard_contracts.samples import Finite

# Styles that are shown one answer, and styles that rank the answers of a group.
ALONE, GROUPWISE = ("single", "rubric"), ("multi", "pairwise")
# The answers that one request of style `multi` compares.
MOST_AT_ONCE = 26


class PinnedJudge(Config):
    """The judge as it was when the run was made: later changes are for other runs. `settings`: `JudgeSettings`.

    `accuracy`: the share of known pairs of `calibrated_on` in the right order, and `accuracy_low` the lower end of its
    95% interval; None for a judge that was never calibrated. `doubt`: why its rewards were allowed by `uncalibrated`
    alone.
    """

    id: UUID
    style: Literal["single", "rubric", "multi", "pairwise"]
    endpoint: PinnedEndpoint
    settings: dict[str, Any]
    calibrated_on: str | None = None
    accuracy: float | None = None
    accuracy_low: float | None = None
    doubt: str | None = None

    @property
    def groupwise(self) -> bool:
        """Whether it ranks the answers to a prompt: an answer alone has no rank."""
        return self.style in GROUPWISE


def judge_identity(endpoint: UUID | str, model: str) -> str:
    """How lineages name an LLM as the teacher of a policy, next to the content hashes of reward models."""
    return f"judge {endpoint} {model}"


class JudgeReward(Config):
    """What an LLM judge gives an answer, from 0 to 1: its score of 1 to 10, less 1, over 9 (styles `single`, `rubric`);
    or the share of the other answers to the prompt that it ranks lower, ties 1/2 (`multi`, `pairwise`)."""

    kind: Literal["judge"]
    weight: Annotated[
        Finite, Field(description="Factor of the rule's reward; 0 only watches, as an independent judge does.")
    ] = 1.0
    judge: Annotated[
        str,
        Field(
            min_length=3,
            max_length=250,
            pattern=r"^[^/\s]+/[^/\s]+$",
            description="`EVALUATION/JUDGE`: a judge of an evaluation of this project, asked at its endpoint.",
            json_schema_extra={"names": "judge"},
        ),
    ]
    min_accuracy: Annotated[
        Finite,
        Field(
            ge=0,
            le=1,
            description="Refused unless the lower end of the 95% interval of the judge's accuracy on known pairs is at "
            "least this, on every calibration set.",
            json_schema_extra={"source": "ours; people agree with each other on 66% of pairs in arXiv 2305.14387"},
        ),
    ] = 0.6
    uncalibrated: Annotated[
        bool, Field(description="Launch even where the judge was never calibrated, or its accuracy is lower.")
    ] = False
    every: Annotated[
        Count,
        Field(description="Asked at the first sampling and at every n-th after it; above 1 needs the weight 0."),
    ] = 1
    share: Annotated[
        Finite,
        Field(
            gt=0,
            le=1,
            description="Share of the answers of a sampling that it is asked about, another draw each time, or "
            "of the prompts where it ranks; below 1 needs the weight 0.",
        ),
    ] = 1.0
    pinned: SkipJsonSchema[PinnedJudge | None] = None

    @model_validator(mode="after")
    def _rewards_all_that_it_counts_for(self) -> JudgeReward:
        if self.weight and (self.every > 1 or self.share < 1):
            raise ValueError(
                "every and share sample the answers of a judge that only watches: with a weight other than 0, an "
                "answer that it is not asked about would have no reward"
            )
        return self
