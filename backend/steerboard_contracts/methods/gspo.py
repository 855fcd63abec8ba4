"""Group sequence policy optimisation: arXiv 2507.18071."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import LearningRate, Positive
from steerboard_contracts.metric_order import ONLINE_METRICS
from steerboard_contracts.online.policy_gradient import KL_REFERENCE, PRETRAINING, ScaledConfig
from steerboard_contracts.online.policy_loss_fields import KlIn, KlWeight, Minibatches, RatioField, ReducerField
from steerboard_contracts.online.rewarded import REWARDS
from steerboard_contracts.samples import Finite
from steerboard_contracts.specs.method import MethodSpec

PAPER = {"source": "arXiv 2507.18071, Section 5.1"}


class GspoConfig(ScaledConfig):
    """Eq. 5 to 7 of arXiv 2507.18071: the ratio of an answer is the geometric mean of its tokens', and an answer is
    clipped as a whole. Its gradient is that of Eq. 13, which is the same one here, where all tokens of an answer have
    the same advantage."""

    method: Annotated[Literal["gspo"], Field(description="The training method.")]
    lr: Annotated[
        LearningRate, Field(json_schema_extra={"source": "arXiv 2402.03300, Section 4.2; the paper gives none"})
    ] = 1e-6
    kl_weight: Annotated[KlWeight, Field(json_schema_extra={"source": "arXiv 2507.18071, Eq. 5, has no KL"})] = 0.0
    kl_in: KlIn = "loss"
    ratio: Annotated[RatioField, Field(json_schema_extra={"source": "arXiv 2507.18071, Eq. 7"})] = "sequence"
    clip_low: Annotated[
        Finite | None,
        Field(
            gt=0,
            lt=1,
            description="Answers whose ratio is below 1 minus this teach nothing more; null for no bound below.",
            json_schema_extra=PAPER,
        ),
    ] = 3e-4
    clip_high: Annotated[
        Positive | None,
        Field(
            description="Answers whose ratio is above 1 plus this teach nothing more.",
            json_schema_extra=PAPER,
        ),
    ] = 4e-4
    reducer: Annotated[ReducerField, Field(json_schema_extra={"source": "arXiv 2507.18071, Eq. 5"})] = "sequence"
    minibatches: Annotated[Minibatches, Field(json_schema_extra=PAPER)] = 4


SPEC = MethodSpec(
    name="gspo",
    title="GSPO",
    about="Sample answers, and clip the update of each as a whole by how much likelier it became, whatever its length.",
    source="arXiv 2507.18071, Eq. 5 to 7",
    config=GspoConfig,
    training="steerboard_workers.alignment.methods.gspo:Gspo",
    data=("prompts", "instructions", "labelled", "preferences"),
    use="Learn from rewards with GSPO",
    outputs=("policy",),
    frozen=(*REWARDS, KL_REFERENCE),
    further_data=(PRETRAINING,),
    changeable=("lr", "kl_weight"),
    form=("rules", "answers", "max_new_tokens", "clip_low", "clip_high", "minibatches"),
    first_metrics=(*ONLINE_METRICS, "clip_share"),
    place=114,
)
