"""Group reward-decoupled normalisation policy optimisation: arXiv 2601.05242."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Literal

from pydantic import Field, model_validator

from steerboard_contracts.fields import LearningRate
from steerboard_contracts.metric_order import ONLINE_METRICS
from steerboard_contracts.online.policy_gradient import KL_REFERENCE, PRETRAINING, GroupedConfig
from steerboard_contracts.online.policy_loss_fields import KlPlace, KlWeight
from steerboard_contracts.online.rewarded import REWARDS
from steerboard_contracts.specs.method import MethodSpec

GRPO = {"source": "arXiv 2402.03300, Section 4.2, on which arXiv 2601.05242 builds"}


class GdpoConfig(GroupedConfig):
    """arXiv 2601.05242: each of several rewards is normalised within its group before they are weighted and added, so
    that no reward hides another by its spread; what comes out is whitened over the sampling."""

    method: Annotated[Literal["gdpo"], Field(description="The training method.")]
    lr: Annotated[LearningRate, Field(json_schema_extra=GRPO)] = 1e-6
    answers: Annotated[
        int,
        Field(
            ge=2,
            le=256,
            description="Answers sampled per prompt.",
            json_schema_extra={"source": "GRPOConfig of TRL 1.16; 64 in arXiv 2402.03300"},
        ),
    ] = 8
    kl_weight: Annotated[KlWeight, Field(json_schema_extra=GRPO)] = 0.04
    kl_in: Annotated[
        KlPlace,
        Field(description="Divergence (KL) is subtracted from the reward or added to the loss; here only the latter."),
    ] = "loss"

    @property
    def compared_with(self) -> str:
        return (
            "several rewards, each the mean of its prompt's answers, over their standard deviation; their weighted sum "
            "all answers of the step"
        )

    def reward_fault(self, given: Collection[str]) -> str | None:
        rewards = self.sources(given) + self.shapes_length + (self.cut_penalty > 0)
        if not self.sources(given) or rewards > 1:
            return super().reward_fault(given)
        return "there is one reward, and several are to be normalised apart: give another one, or take another method"

    @model_validator(mode="after")
    def _scales_within_groups(self) -> GdpoConfig:
        if self.kl_in == "reward":
            raise ValueError("kl_in must be loss: the sum of several normalised rewards has no scale to take a KL from")
        if self.normalise_rewards:
            raise ValueError("normalise_rewards has no effect: each reward is normalised within its group")
        if self.reward_clip is not None:
            raise ValueError("reward_clip bounds the sum of the rewards, which is not what is learned from here")
        return self


SPEC = MethodSpec(
    name="gdpo",
    title="GDPO",
    about="Sample answers and learn from several rewards, each compared within its prompt's answers before they are "
    "added.",
    source="arXiv 2601.05242",
    config=GdpoConfig,
    training="steerboard_workers.alignment.methods.gdpo:Gdpo",
    data=("prompts", "instructions", "labelled", "preferences"),
    use="Learn from several rewards with GDPO",
    outputs=("policy",),
    frozen=(*REWARDS, KL_REFERENCE),
    further_data=(PRETRAINING,),
    changeable=("lr", "kl_weight"),
    form=("rules", "reward_weights", "answers", "max_new_tokens", "kl_weight"),
    first_metrics=ONLINE_METRICS,
    place=113,
)
