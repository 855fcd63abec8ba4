"""Group relative policy optimisation: arXiv 2402.03300 (DeepSeekMath)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import LearningRate
from steerboard_contracts.metric_order import ONLINE_METRICS
from steerboard_contracts.online.policy_gradient import KL_REFERENCE, PRETRAINING, ScaledConfig
from steerboard_contracts.online.policy_loss_fields import KlIn, KlWeight, ReducerField
from steerboard_contracts.online.rewarded import REWARDS
from steerboard_contracts.specs.method import MethodSpec
from steerboard_contracts.specs.tuning import TuningName

PAPERS = {"source": "arXiv 2402.03300, Section 4.2"}
WITHOUT_BIAS = {"source": "std and sequence: arXiv 2402.03300, Eq. 3; none and constant: arXiv 2503.20783 (Dr. GRPO)"}


class GrpoConfig(ScaledConfig):
    """Eq. 3 of arXiv 2402.03300: rewards less their group's mean, over its standard deviation.

    `scaling: none` with `reducer: constant` is Dr. GRPO, arXiv 2503.20783.
    """

    method: Annotated[Literal["grpo"], Field(description="The training method.")]
    lr: Annotated[LearningRate, Field(json_schema_extra=PAPERS)] = 1e-6
    kl_weight: Annotated[KlWeight, Field(json_schema_extra=PAPERS)] = 0.04
    kl_in: Annotated[KlIn, Field(json_schema_extra=PAPERS)] = "loss"
    reducer: Annotated[ReducerField, Field(json_schema_extra=WITHOUT_BIAS)] = "sequence"


SPEC = MethodSpec(
    name="grpo",
    title="GRPO",
    about="Sample answers and learn by how far the reward of each is above or below the others' to the same prompt.",
    source="arXiv 2402.03300, Eq. 3; arXiv 2503.20783",
    config=GrpoConfig,
    training="steerboard_workers.alignment.methods.grpo:Grpo",
    data=("prompts", "instructions", "labelled", "preferences"),
    use="Learn from rewards with GRPO",
    outputs=("policy",),
    frozen=(*REWARDS, KL_REFERENCE),
    further_data=(PRETRAINING,),
    changeable=("lr", "kl_weight"),
    form=("rules", "answers", "max_new_tokens", "kl_weight", "scaling", "reducer"),
    first_metrics=ONLINE_METRICS,
    tuning=TuningName("reinforcement", {"eval_interval": "evaluate_every"}, {"compute_multiplier": "answers"}),
    place=111,
)
