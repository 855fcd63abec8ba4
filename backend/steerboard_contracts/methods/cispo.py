"""Policy optimisation with clipped importance-sampling weights: arXiv 2506.13585."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import LearningRate, Positive
from steerboard_contracts.metric_order import ONLINE_METRICS
from steerboard_contracts.online.policy_gradient import KL_REFERENCE, PRETRAINING, ScaledConfig
from steerboard_contracts.online.policy_loss_fields import ClipField, KlIn, KlWeight, Minibatches, ReducerField
from steerboard_contracts.online.rewarded import REWARDS
from steerboard_contracts.samples import Finite
from steerboard_contracts.specs.method import MethodSpec


class CispoConfig(ScaledConfig):
    """Eq. 4 and 5 of arXiv 2506.13585: every token is learned, by its log-prob times a ratio that is bounded above and
    has no gradient. So rare tokens that a clip would silence keep theirs."""

    method: Annotated[Literal["cispo"], Field(description="The training method.")]
    lr: Annotated[LearningRate, Field(json_schema_extra={"source": "arXiv 2402.03300, Section 4.2"})] = 1e-6
    kl_weight: Annotated[KlWeight, Field(json_schema_extra={"source": "arXiv 2506.13585, Section 3.1, has no KL"})] = (
        0.0
    )
    kl_in: KlIn = "loss"
    clip: Annotated[ClipField, Field(json_schema_extra={"source": "arXiv 2506.13585, Eq. 4"})] = "weight"
    clip_low: Annotated[
        Finite | None,
        Field(
            gt=0,
            lt=1,
            description="Weights are at least 1 minus this; null for no bound below.",
            json_schema_extra={"source": "arXiv 2506.13585, Section 3.1: no lower bound"},
        ),
    ] = None
    clip_high: Annotated[
        Positive | None,
        Field(
            description="Weights are at most 1 plus this.",
            json_schema_extra={
                "source": "arXiv 2510.13786: weights up to 5; arXiv 2506.13585 tunes it and does not give it"
            },
        ),
    ] = 4.0
    reducer: Annotated[ReducerField, Field(json_schema_extra={"source": "arXiv 2506.13585, Eq. 4"})] = "token"
    minibatches: Annotated[Minibatches, Field(json_schema_extra={"source": "arXiv 2506.13585, Section 3.1: 16"})] = 16


SPEC = MethodSpec(
    name="cispo",
    title="CISPO",
    about="Sample answers and learn every token of them, with a bound on how much each counts instead of a clip.",
    source="arXiv 2506.13585, Eq. 4 and 5",
    config=CispoConfig,
    training="steerboard_workers.alignment.methods.cispo:Cispo",
    data=("prompts", "instructions", "labelled", "preferences"),
    use="Learn from rewards with CISPO",
    outputs=("policy",),
    frozen=(*REWARDS, KL_REFERENCE),
    further_data=(PRETRAINING,),
    changeable=("lr", "kl_weight"),
    form=("rules", "answers", "max_new_tokens", "clip_high", "minibatches"),
    first_metrics=(*ONLINE_METRICS, "clip_share"),
    place=115,
)
