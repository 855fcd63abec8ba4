"""Policy optimisation with a decoupled clip and dynamic sampling: arXiv 2503.14476."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import LearningRate, Positive
from steerboard_contracts.metric_order import ONLINE_METRICS
from steerboard_contracts.online.policy_gradient import KL_REFERENCE, PRETRAINING, ScaledConfig
from steerboard_contracts.online.policy_loss_fields import KlIn, KlWeight, Minibatches, ReducerField
from steerboard_contracts.online.rewarded import REWARDS
from steerboard_contracts.samples import Finite
from steerboard_contracts.specs.method import MethodSpec

PAPER = {"source": "arXiv 2503.14476, Section 4.1"}


class DapoConfig(ScaledConfig):
    """arXiv 2503.14476, whose four parts are fields that other methods have, too: a clip that is wider above (Eq. 10),
    prompts whose answers tie are replaced (Eq. 11), the mean of tokens (Eq. 12), and a price for the last part of the
    longest answers (Eq. 13). There is no KL."""

    method: Annotated[Literal["dapo"], Field(description="The training method.")]
    lr: Annotated[LearningRate, Field(json_schema_extra=PAPER)] = 1e-6
    answers: Annotated[int, Field(ge=2, le=256, description="Answers sampled per prompt.", json_schema_extra=PAPER)] = (
        16
    )
    kl_weight: Annotated[KlWeight, Field(json_schema_extra={"source": "arXiv 2503.14476, Section 2.3"})] = 0.0
    kl_in: KlIn = "loss"
    clip_low: Annotated[
        Finite | None,
        Field(
            gt=0,
            lt=1,
            description="Ratios below 1 minus this teach nothing more; null for no bound below.",
            json_schema_extra=PAPER,
        ),
    ] = 0.2
    clip_high: Annotated[
        Positive | None,
        Field(
            description="Ratios above 1 plus this teach nothing more.",
            json_schema_extra=PAPER,
        ),
    ] = 0.28
    reducer: Annotated[ReducerField, Field(json_schema_extra={"source": "arXiv 2503.14476, Eq. 12"})] = "token"
    minibatches: Annotated[
        Minibatches, Field(json_schema_extra={"source": "arXiv 2503.14476, Section 4.1: 8,192 answers in steps of 512"})
    ] = 16
    refill: Annotated[
        int,
        Field(
            ge=0,
            le=64,
            description="Ask further prompts, at most this often in a step, until as many as a batch has are answered "
            "with unequal rewards. Prompts whose answers are all equal are left out.",
            json_schema_extra={"source": "verl's recipe: 10; arXiv 2503.14476, Eq. 11, has no limit"},
        ),
    ] = 10
    overlong_share: Annotated[
        Finite | None,
        Field(
            gt=0,
            lt=1,
            description="An answer within this share of its limit pays a share of overlong_penalty that grows with "
            "every token; null for none, as with overlong_tokens.",
            json_schema_extra={"source": "arXiv 2503.14476, Section 4.1: 4096 of 20480"},
        ),
    ] = 0.2


SPEC = MethodSpec(
    name="dapo",
    title="DAPO",
    about="Sample answers until they differ, and learn every token alike, with a wider clip for what becomes likelier.",
    source="arXiv 2503.14476, Eq. 8 to 13",
    config=DapoConfig,
    training="steerboard_workers.alignment.methods.dapo:Dapo",
    data=("prompts", "instructions", "labelled", "preferences"),
    use="Learn from rewards with DAPO",
    outputs=("policy",),
    frozen=(*REWARDS, KL_REFERENCE),
    further_data=(PRETRAINING,),
    changeable=("lr", "kl_weight"),
    form=("rules", "answers", "max_new_tokens", "clip_high", "refill", "overlong_share"),
    first_metrics=(*ONLINE_METRICS, "clip_share"),
    place=116,
)
