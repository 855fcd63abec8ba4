"""Kahneman-Tversky optimisation: Section 4 of arXiv 2402.01306."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from steerboard_contracts.fields import Count, LearningRate, Positive
from steerboard_contracts.models import POLICIES
from steerboard_contracts.pairs import Reduction
from steerboard_contracts.specs.method import Frozen, MethodSpec
from steerboard_contracts.training import PAPER, TrainingConfig
from steerboard_contracts.watching.health import HealthRules, ZeroZRule
from steerboard_contracts.watching.inspected_pairs import InspectPairs

PAPERS = {"source": "arXiv 2402.01306, Section 4.2"}
TRL = {"source": "KTOConfig of TRL 1.16, whose documentation advises at most 1e-6 for beta 0.1"}


class KtoConfig(TrainingConfig):
    """Section 4 of arXiv 2402.01306: answers that are desirable or not, each by itself."""

    method: Annotated[Literal["kto"], Field(description="The training method.")]
    lr: Annotated[LearningRate, Field(json_schema_extra=TRL)] = 1e-6
    batch: Annotated[
        Count, Field(description="Answers in one optimiser step; a pair is two.", json_schema_extra=PAPER)
    ] = 128
    beta: Annotated[
        Positive | None,
        Field(
            description="Strength of the pull to the reference. By default 0.1 for sums of "
            "log-probs; means have no default.",
            json_schema_extra={"source": "0.1 for sums: arXiv 2402.01306, Section 4.2; no source has one for means"},
        ),
    ] = None
    lambda_desirable: Annotated[
        Positive,
        Field(
            description="Weight of desirable answers. lambda_desirable times their number should be 1 to 4/3 times "
            "lambda_undesirable times the number of the others.",
            json_schema_extra=PAPERS,
        ),
    ] = 1.0
    lambda_undesirable: Annotated[
        Positive, Field(description="Weight of undesirable answers.", json_schema_extra=PAPERS)
    ] = 1.0
    reduction: Annotated[
        Reduction,
        Field(
            description="Log-probs of an answer are summed over its tokens, as in the paper, or averaged, which needs "
            "a larger beta of its own.",
            json_schema_extra={"source": "arXiv 2402.01306, Section 4.1: the sum"},
        ),
    ] = "sum"
    inspect_pairs: InspectPairs = 64
    health: HealthRules = Field(default=[ZeroZRule()])

    @model_validator(mode="before")
    @classmethod
    def _of_former_releases(cls, given: Any) -> Any:
        """Their `reduction` was called `log_probs`."""
        if not isinstance(given, dict) or "log_probs" not in given or "reduction" in given:
            return given
        rest = {name: value for name, value in given.items() if name != "log_probs"}
        return {**rest, "reduction": given["log_probs"]}

    @model_validator(mode="after")
    def _beta_suits_the_reduction(self) -> KtoConfig:
        if self.beta is None and self.reduction == "mean":
            raise ValueError(
                "beta is needed with reduction mean: its default of 0.1 is for sums over the tokens of an answer, and "
                "a mean is smaller by the answer's length"
            )
        return self

    @property
    def strength(self) -> float:
        """beta, or its default for sums."""
        return 0.1 if self.beta is None else self.beta


SPEC = MethodSpec(
    name="kto",
    title="KTO",
    about="Learn from answers that are desirable or not, without pairs.",
    source="arXiv 2402.01306, Section 4.1",
    config=KtoConfig,
    training="steerboard_workers.alignment.methods.kto:Kto",
    data=("unpaired", "preferences"),
    use="Align with KTO",
    outputs=("policy",),
    frozen=(
        Frozen(
            "reference",
            POLICIES,
            "What the policy is compared with; by default the start model.",
            required=False,
            uses=("log_probs",),
        ),
    ),
    splits_pairs=True,
    leaves_out="equal_sides",
    needs=("both_thumbs", "two_prompts"),
    form=("beta", "reduction", "lambda_desirable", "lambda_undesirable"),
    first_metrics=("eval_loss", "loss", "eval_margin", "margin", "kl"),
    place=70,
)
