"""Decision Transformer: Eq. 6 of arXiv 2308.12050."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import Positive
from steerboard_contracts.samples import Finite
from steerboard_contracts.specs.method import MethodSpec
from steerboard_contracts.training import PAPER, TrainingConfig


class DecisionTransformerConfig(TrainingConfig):
    """Eq. 6 of arXiv 2308.12050: SFT behind `<rm_score> a.b`."""

    method: Annotated[Literal["decision_transformer"], Field(description="The training method.")]
    score_scale: Annotated[
        Literal["zscore", "quantile"],
        Field(
            description="What a score means: the normalised reward, or a place among the labelled rewards.",
            json_schema_extra={"source": "arXiv 2308.12050, Offline RLHF: rewards less their mean, over their sd"},
        ),
    ] = "zscore"
    score_step: Annotated[Positive, Field(le=1, description="Scores are rounded to this: 0.01, 0.1, 0.5 or 1.")] = 0.1
    score_limit: Annotated[Positive, Field(description="Scores are clipped to between minus this and this.")] = 5.0
    default_score: Annotated[
        Finite, Field(description="Requested of the policy where a prompt names no score.", json_schema_extra=PAPER)
    ] = 5.0


SPEC = MethodSpec(
    name="decision_transformer",
    title="Decision Transformer",
    short="DT",
    about="SFT behind the reward in the prompt, so that it can be asked for.",
    source="arXiv 2308.12050, Eq. 6",
    config=DecisionTransformerConfig,
    training="steerboard_workers.alignment.methods.decision_transformer:DecisionTransformer",
    data=("labelled",),
    use="Align with a Decision Transformer",
    outputs=("policy",),
    learns_from_rewards=True,
    condition="default_score",
    form=("score_scale", "score_step"),
    place=50,
)
