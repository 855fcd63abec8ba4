"""REINFORCE leave-one-out: Section 3.2 of arXiv 2402.14740."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import LearningRate
from steerboard_contracts.metric_order import ONLINE_METRICS
from steerboard_contracts.online.policy_gradient import KL_REFERENCE, PRETRAINING, GroupedConfig
from steerboard_contracts.online.policy_loss_fields import KlWeight, Reducer
from steerboard_contracts.online.rewarded import REWARDS
from steerboard_contracts.specs.method import MethodSpec

ONE_ACTION = {"source": "arXiv 2402.14740, Section 3.2: a whole answer is one action"}
TRL = {"source": "RLOOConfig of TRL 1.16"}


class RlooConfig(GroupedConfig):
    """Section 3.2 of arXiv 2402.14740: each answer against the mean of the others to its prompt."""

    method: Annotated[Literal["rloo"], Field(description="The training method.")]
    lr: Annotated[LearningRate, Field(json_schema_extra=TRL)] = 1e-6
    kl_weight: Annotated[KlWeight, Field(json_schema_extra=TRL)] = 0.05
    reducer: Annotated[
        Reducer,
        Field(
            description="The loss is the mean over all tokens, the mean over answers of the mean over their tokens, or "
            "the sum over tokens divided by answers times the longest answer that is allowed. Only the last has the "
            "gradient of the expected reward.",
            json_schema_extra=ONE_ACTION,
        ),
    ] = "constant"

    @property
    def compared_with(self) -> str:
        return "the mean of the other answers to its prompt"


SPEC = MethodSpec(
    name="rloo",
    title="RLOO",
    about="Sample answers and make those likelier that have more reward than the others to the same prompt.",
    source="arXiv 2402.14740, Section 3.2",
    recommended=True,
    config=RlooConfig,
    training="steerboard_workers.alignment.methods.rloo:Rloo",
    data=("prompts", "instructions", "labelled", "preferences"),
    use="Learn from rewards with RLOO",
    outputs=("policy",),
    frozen=(*REWARDS, KL_REFERENCE),
    further_data=(PRETRAINING,),
    changeable=("lr", "kl_weight"),
    form=("rules", "answers", "max_new_tokens", "kl_weight"),
    first_metrics=ONLINE_METRICS,
    place=110,
)
