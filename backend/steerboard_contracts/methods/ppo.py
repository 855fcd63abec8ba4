"""Proximal policy optimisation with a critic: Section 5 of arXiv 1707.06347, for answers of a language model."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import Count, Positive
from steerboard_contracts.metric_order import ONLINE_METRICS
from steerboard_contracts.models import POLICIES, SCALARS
from steerboard_contracts.online.policy_gradient import KL_REFERENCE, PRETRAINING, PolicyGradientConfig
from steerboard_contracts.online.policy_loss_fields import KlWeight, Minibatches
from steerboard_contracts.online.rewarded import REWARDS
from steerboard_contracts.samples import Finite
from steerboard_contracts.specs.method import MethodSpec, Trained
from steerboard_contracts.training import PAPER

GAE = {"source": "arXiv 2308.12050, Hyperparameters; Eq. 16 of arXiv 1506.02438"}
WARMUP = {"source": "OpenRLHF's freezing_actor_steps"}
FIRST = {"source": "the first implementation of arXiv 1707.06347; no part of the paper"}


class PpoConfig(PolicyGradientConfig):
    """Section 5 of arXiv 1707.06347: the clipped policy gradient, with advantages of single tokens from a critic."""

    method: Annotated[Literal["ppo"], Field(description="The training method.")]
    lr: Annotated[
        Positive, Field(le=1, description="Learning rate of the policy at its peak.", json_schema_extra=PAPER)
    ] = 5e-7
    critic_lr: Annotated[
        Positive,
        Field(
            le=1, description="Learning rate of the critic at its peak, on the same schedule.", json_schema_extra=PAPER
        ),
    ] = 9e-6
    batch: Annotated[Count, Field(description="Prompts answered at a time.", json_schema_extra=PAPER)] = 1024
    minibatches: Annotated[
        Minibatches,
        Field(json_schema_extra={"source": "arXiv 2308.12050, Hyperparameters: 1,024 answers in steps of 128"}),
    ] = 8
    kl_weight: Annotated[KlWeight, Field(json_schema_extra=PAPER)] = 0.01
    gae_lambda: Annotated[
        Finite,
        Field(
            ge=0,
            le=1,
            description="Generalised advantage estimation. 1: an advantage is the reward minus what the critic "
            "expected; 0: only what the next token changes of that.",
            json_schema_extra=GAE,
        ),
    ] = 0.95
    gamma: Annotated[
        Finite, Field(gt=0, le=1, description="Discount of the reward for each token before it.", json_schema_extra=GAE)
    ] = 1.0
    value_clip: Annotated[
        Positive | None,
        Field(
            description="A critic's value gains nothing by moving further than this from what it was when the answers "
            "were sampled; null for no bound.",
            json_schema_extra=FIRST,
        ),
    ] = 0.2
    value_weight: Annotated[
        Positive,
        Field(
            description="Weight of the critic's loss. It matters where the gradient of both together is scaled down."
        ),
    ] = 1.0
    critic_warmup: Annotated[
        int,
        Field(
            ge=0,
            description="Samplings at the beginning from which only the critic learns.",
            json_schema_extra=WARMUP,
        ),
    ] = 0

    @property
    def compared_with(self) -> str:
        return "what a critic expects at each token (GAE), then all tokens of the sampling"


SPEC = MethodSpec(
    name="ppo",
    title="PPO",
    about="Learn from rewards of the model's own answers, with a critic that learns what they are worth.",
    source="arXiv 1707.06347, Eq. 7; arXiv 2203.02155",
    config=PpoConfig,
    training="steerboard_workers.alignment.methods.ppo:Ppo",
    data=("prompts", "instructions", "labelled", "preferences"),
    use="Learn from rewards with PPO",
    outputs=("policy", "critic"),
    frozen=(*REWARDS, KL_REFERENCE),
    further_data=(PRETRAINING,),
    also_trains=(
        Trained(
            "critic",
            POLICIES | SCALARS,
            "What the critic starts from; by default the reward model, whose head it keeps.",
            required=False,
            like=REWARDS[0].name,
        ),
    ),
    changeable=("lr", "critic_lr", "kl_weight"),
    form=("rules", "max_new_tokens", "kl_weight", "critic_lr"),
    first_metrics=(*ONLINE_METRICS, "explained_variance"),
    place=105,
)
