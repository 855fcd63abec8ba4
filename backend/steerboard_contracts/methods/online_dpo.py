"""Online DPO: arXiv 2402.04792 (direct alignment from online AI feedback), with rewards as the feedback."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import LearningRate, NonNegative
from steerboard_contracts.metric_order import ONLINE_METRICS
from steerboard_contracts.models import POLICIES
from steerboard_contracts.online.rewarded import REWARDS, RewardedOnlineConfig
from steerboard_contracts.pairs import Beta, Reduction, SftWeight
from steerboard_contracts.specs.method import Frozen, MethodSpec

PAPER = {"source": "arXiv 2402.04792, Appendix: learning rate 5e-7, 2 answers at temperature 0.9, beta 0.1"}


class OnlineDpoConfig(RewardedOnlineConfig):
    """Alg. 1 of arXiv 2402.04792: answers of the policy as it is now, the best and the worst of each prompt by reward
    as a pair, and the loss of DPO on it."""

    method: Annotated[Literal["online_dpo"], Field(description="The training method.")]
    lr: Annotated[LearningRate, Field(json_schema_extra=PAPER)] = 5e-7
    answers: Annotated[
        int,
        Field(
            ge=2,
            le=256,
            description="Answers sampled per prompt, whose best and worst are a pair.",
            json_schema_extra=PAPER,
        ),
    ] = 2
    beta: Beta = None
    reduction: Reduction = "sum"
    sft_weight: SftWeight = 0.0
    min_margin: Annotated[
        NonNegative,
        Field(
            description="Pairs whose rewards differ by no more than this are ties, and left out.",
            json_schema_extra={"source": "arXiv 2405.07863 (RLHF Workflow): ties are left out"},
        ),
    ] = 0.0
    refill: Annotated[
        int,
        Field(
            ge=0,
            le=64,
            description="Ask further prompts, at most this often in a step, until as many as a batch has are answered "
            "with unequal rewards.",
            json_schema_extra={"source": "arXiv 2503.14476, Section 3.2, for groups; the paper does without"},
        ),
    ] = 4
    share_prompt: Annotated[bool, Field(description="Compute the prompt of a pair once.")] = True


SPEC = MethodSpec(
    name="online_dpo",
    title="Online DPO",
    about="Sample answers and learn to prefer the best to the worst one of each prompt, relative to a reference.",
    source="arXiv 2402.04792, Alg. 1",
    config=OnlineDpoConfig,
    training="steerboard_workers.alignment.methods.online_dpo:OnlineDpo",
    data=("prompts", "instructions", "labelled", "preferences"),
    use="Learn from rewards with online DPO",
    outputs=("policy",),
    frozen=(
        *REWARDS,
        Frozen(
            "reference",
            POLICIES,
            "The policy to stay near; by default the model that training starts from.",
            required=False,
        ),
    ),
    sequences=2,
    changeable=("lr", "beta"),
    form=("rules", "answers", "beta", "max_new_tokens"),
    first_metrics=("eval_pair_accuracy", "pair_accuracy", *ONLINE_METRICS),
    place=120,
)
