"""REINFORCE++: arXiv 2501.03262."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from steerboard_contracts.fields import LearningRate
from steerboard_contracts.metric_order import ONLINE_METRICS
from steerboard_contracts.online.policy_gradient import KL_REFERENCE, PRETRAINING, PolicyGradientConfig
from steerboard_contracts.online.policy_loss_fields import KlWeight
from steerboard_contracts.online.rewarded import REWARDS
from steerboard_contracts.specs.method import MethodSpec

PAPERS = {"source": "arXiv 2501.03262, its table of hyper-parameters"}


class ReinforcePpConfig(PolicyGradientConfig):
    """arXiv 2501.03262: returns of single tokens, whitened over all tokens of a sampling.

    `baseline` takes the mean of the prompt's answers away first; the paper then has the KL in the loss, as k2.
    """

    method: Annotated[Literal["reinforce_pp"], Field(description="The training method.")]
    lr: Annotated[LearningRate, Field(json_schema_extra=PAPERS)] = 5e-7
    kl_weight: Annotated[KlWeight, Field(json_schema_extra=PAPERS)] = 0.01
    baseline: Annotated[
        bool,
        Field(description="Subtract the mean reward of the answers to the same prompt; needs 2 answers or more."),
    ] = False

    @property
    def compared_with(self) -> str:
        of_group = "the mean of its prompt's answers, then " if self.baseline else ""
        return f"{of_group}all tokens of the step"

    @model_validator(mode="after")
    def _has_a_baseline(self) -> ReinforcePpConfig:
        if self.baseline and self.answers < 2:
            raise ValueError("baseline compares the answers to a prompt: it needs answers of 2 or more")
        return self


SPEC = MethodSpec(
    name="reinforce_pp",
    title="REINFORCE++",
    about="Sample answers and learn by the reward of each against that of all others in the step.",
    source="arXiv 2501.03262",
    config=ReinforcePpConfig,
    training="steerboard_workers.alignment.methods.reinforce_pp:ReinforcePp",
    data=("prompts", "instructions", "labelled", "preferences"),
    use="Learn from rewards with REINFORCE++",
    outputs=("policy",),
    frozen=(*REWARDS, KL_REFERENCE),
    further_data=(PRETRAINING,),
    changeable=("lr", "kl_weight"),
    form=("rules", "answers", "baseline", "max_new_tokens", "kl_weight"),
    first_metrics=ONLINE_METRICS,
    place=112,
)
