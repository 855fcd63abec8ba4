"""Keeps some of several answers to each prompt."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from steerboard_contracts.fields import Config, Count, NonNegative, Precision
from steerboard_contracts.samples import Finite, SampleKind
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import datasets, models
from steerboard_contracts.specs.work import rows_of

Keep = Literal["best", "best_and_worst", "all"]
KEPT_AS: dict[Keep, SampleKind] = {"best": "instructions", "best_and_worst": "preferences", "all": "labelled"}


class SelectConfig(Config):
    """Keeps some of the answers in each group. The score of an answer is the weighted sum of its rewards, less
    `penalty` times its characters; several rewards are those of several datasets over the same rows.

    With the input `judge`, a preference model, the answers to a prompt play a tournament instead: the score of an
    answer is the mean probability that it is better than those it meets, asked in both orders. Rewards are reported
    where the datasets have them, and decide nothing.
    """

    run: Literal["select"] = "select"
    keep: Annotated[
        Keep,
        Field(
            description="`best`: instructions with the best answer; `best_and_worst`: a preference pair; `all`: all "
            "answers, labelled with their score, for methods that weigh by it.",
            json_schema_extra={"topic": "Selection"},
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
            description="Subtracted from the score for each character of the answer, in units of `scale`, or of the "
            "probability to win; the RLHF Workflow subtracts 0.001 from raw rewards.",
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
    pairs: Annotated[
        int,
        Field(
            ge=1,
            le=64,
            description="With `keep: best_and_worst`: at most this many pairs of each group, the best answer with the "
            "worst, the second best with the second worst, and so on; each answer is in one pair.",
        ),
    ] = 1
    relative: Annotated[
        bool, Field(description="With `keep: all`: label with the score less the mean of the group.")
    ] = False

    opponents: Annotated[
        int,
        Field(
            ge=2,
            le=255,
            description="With a `judge`: how many others an answer is compared with. Up to one answer more than this, "
            "all pairs are compared; beyond, each answer meets those next to it in a circle of random order.",
            json_schema_extra={"source": "All pairs of the 8 answers of arXiv 2405.07863"},
        ),
    ] = 7
    seed: Annotated[int, Field(description="With a `judge`: seed of the order in the circle.")] = 0
    batch_tokens: Annotated[
        Count, Field(description="With a `judge`: token budget of one forward pass; it changes no result.")
    ] = 8192
    precision: Annotated[
        Precision,
        Field(description="With a `judge`: `auto` is bf16 on a GPU, fp32 on a CPU. Lower precision makes more ties."),
    ] = "fp32"

    @model_validator(mode="after")
    def _fits(self) -> SelectConfig:
        if any(weight == 0 for weight in self.weights):
            raise ValueError("a weight of 0 leaves a reward out: leave its dataset out of `data` instead")
        if self.relative and self.keep != "all":
            raise ValueError(f"`relative` changes labels, and `keep: {self.keep}` has none")
        if self.pairs > 1 and self.keep != "best_and_worst":
            raise ValueError(f"`pairs` is how many pairs a group gives, and `keep: {self.keep}` makes none")
        return self


SPEC = RunKindSpec(
    run="select",
    title="Select",
    about="Keep the best of several answers to each prompt, the best and the worst, or all by weight.",
    config=SelectConfig,
    slots={
        "data": datasets("instructions", "labelled", many=True),
        "judge": models("preference", required=False),
    },
    without={"judge": {"data": datasets("labelled", many=True)}},
    makes=KEPT_AS["best"],
    makes_by=("keep", {keep: str(kind) for keep, kind in KEPT_AS.items()}),
    lists={"weights": "data"},
    needs_field=dict.fromkeys(("instructions", "labelled"), "group"),
    form=("keep", "weights", "penalty", "scale", "opponents"),
    for_data=dict.fromkeys(("instructions", "labelled"), "Select among several answers per prompt"),
    for_model={"preference": "Select answers by it"},
    resumes="rows",
    work=rows_of("data.0"),
)
