"""Soft adaptive policy optimisation: arXiv 2511.20347."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import LearningRate
from steerboard_contracts.metric_order import ONLINE_METRICS
from steerboard_contracts.online.policy_gradient import KL_REFERENCE, PRETRAINING, ScaledConfig
from steerboard_contracts.online.policy_loss_fields import ClipField, KlIn, KlWeight, Minibatches, ReducerField
from steerboard_contracts.online.rewarded import REWARDS
from steerboard_contracts.specs.method import MethodSpec


class SapoConfig(ScaledConfig):
    """arXiv 2511.20347: a token counts less the further its ratio is from 1, without a bound at which it
    stops to count; those of negative advantage a little sooner."""

    method: Annotated[Literal["sapo"], Field(description="The training method.")]
    lr: Annotated[LearningRate, Field(json_schema_extra={"source": "arXiv 2402.03300, Section 4.2"})] = 1e-6
    kl_weight: Annotated[KlWeight, Field(json_schema_extra={"source": "arXiv 2511.20347 has no KL"})] = 0.0
    kl_in: KlIn = "loss"
    clip: Annotated[ClipField, Field(json_schema_extra={"source": "arXiv 2511.20347"})] = "gate"
    reducer: Annotated[ReducerField, Field(json_schema_extra={"source": "arXiv 2511.20347"})] = "sequence"
    minibatches: Annotated[
        Minibatches, Field(json_schema_extra={"source": "arXiv 2507.18071, Section 5.1, by the same authors"})
    ] = 4


SPEC = MethodSpec(
    name="sapo",
    title="SAPO",
    about="Sample answers, and let tokens count less the further their probability has moved, without a clip.",
    source="arXiv 2511.20347",
    config=SapoConfig,
    training="steerboard_workers.alignment.methods.sapo:Sapo",
    data=("prompts", "instructions", "labelled", "preferences"),
    use="Learn from rewards with SAPO",
    outputs=("policy",),
    frozen=(*REWARDS, KL_REFERENCE),
    further_data=(PRETRAINING,),
    changeable=("lr", "kl_weight"),
    form=("rules", "answers", "max_new_tokens", "gate_positive", "gate_negative", "minibatches"),
    first_metrics=(*ONLINE_METRICS, "clip_share"),
    place=117,
)
