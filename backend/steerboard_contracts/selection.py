"""Which of several answers to each prompt are kept: the config of a `select` run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from steerboard_contracts.fields import Config, NonNegative
from steerboard_contracts.samples import Finite, SampleKind

Keep = Literal["best", "best_and_worst", "all"]
KEPT_AS: dict[Keep, SampleKind] = {"best": "instructions", "best_and_worst": "preferences", "all": "labelled"}


class SelectConfig(Config):
    """Keeps some of the answers in each group of a scored dataset. The score of an answer is the weighted sum of its
    rewards, less `penalty` times its characters; several rewards are those of several datasets over the same rows."""

    run: Literal["select"] = "select"
    keep: Annotated[
        Keep,
        Field(
            description="`best`: instructions with the best answer; `best_and_worst`: a preference pair; `all`: all "
            "answers, labelled with their score, for methods that weigh by it.",
        ),
    ] = "best"
    weights: Annotated[
        list[Finite],
        Field(default=[], description="One weight for each of `data`, in their order; empty: each counts 1."),
    ]
    scale: Annotated[
        Literal["zscore", "raw"],
        Field(
            description="Units of the rewards that are weighted: `zscore` over each labelled dataset, or as the reward "
            "model gave them.",
        ),
    ] = "zscore"
    penalty: Annotated[
        NonNegative,
        Field(
            description="Taken off the score for each character of the answer, in units of `scale`; the RLHF Workflow "
            "takes 0.001 off raw rewards.",
            json_schema_extra={"source": "arXiv 2405.07863, length penalty; off unless asked for"},
        ),
    ] = 0.0
    min_margin: Annotated[
        NonNegative,
        Field(
            description="A group whose best is above its worst by no more than this is a tie, and dropped.",
            json_schema_extra={"source": "arXiv 2405.07863: ties are dropped"},
        ),
    ] = 0.0
    relative: Annotated[
        bool, Field(description="With `keep: all`: label with the score less the mean of the group.")
    ] = False

    @model_validator(mode="after")
    def _fits(self) -> SelectConfig:
        if any(weight == 0 for weight in self.weights):
            raise ValueError("a weight of 0 leaves a reward out: leave its dataset out of `data` instead")
        if self.relative and self.keep != "all":
            raise ValueError(f"`relative` changes labels, and `keep: {self.keep}` has none")
        return self
