"""Soft adaptive policy optimisation: arXiv 2511.20347."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import NonNegative, Positive
from steerboard_contracts.metric_order import ONLINE_METRICS
from steerboard_contracts.online.policy_gradient import KL_REFERENCE, PRETRAINING, Clip, KlPlace, Reducer, ScaledConfig
from steerboard_contracts.online.rewarded import REWARDS
from steerboard_contracts.specs.method import MethodSpec


class SapoConfig(ScaledConfig):
    """arXiv 2511.20347: a token counts less the further its ratio is from 1, without a bound at which it
    stops to count; those of negative advantage a little sooner."""

    method: Annotated[Literal["sapo"], Field(description="The training method.")]
    lr: Annotated[
        Positive,
        Field(le=1, description="Peak learning rate.", json_schema_extra={"source": "arXiv 2402.03300, Section 4.2"}),
    ] = 1e-6
    kl_weight: Annotated[
        NonNegative,
        Field(
            description="Weight of the KL from the reference; 0 turns it off, and needs no reference.",
            json_schema_extra={"source": "arXiv 2511.20347 has no KL"},
        ),
    ] = 0.0
    kl_in: Annotated[
        KlPlace, Field(description="Whether the KL is subtracted from the reward or added to the loss.")
    ] = "loss"
    clip: Annotated[
        Clip,
        Field(
            description="surrogate: beyond clip_low and clip_high a ratio gains nothing, and has no gradient; weight: "
            "every token is learned, by a ratio that is bounded by them; gate: the further a ratio is from 1, the less "
            "it counts, by gate_positive and gate_negative.",
            json_schema_extra={"source": "arXiv 2511.20347"},
        ),
    ] = "gate"
    reducer: Annotated[
        Reducer,
        Field(
            description="The loss is the mean over all tokens, the mean over answers of the mean over their tokens, or "
            "the sum over tokens divided by answers times the longest answer that is allowed.",
            json_schema_extra={"source": "arXiv 2511.20347"},
        ),
    ] = "sequence"
    minibatches: Annotated[
        int,
        Field(
            ge=1,
            le=256,
            description="Optimiser steps into which the answers of one sampling are split. With one alone, all ratios "
            "are 1, and the clip has no effect.",
            json_schema_extra={"source": "arXiv 2507.18071, Section 5.1, by the same authors"},
        ),
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
