"""A pairwise preference model: Section 2.3 of arXiv 2405.07863 (RLHF Workflow)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import LearningRate, Positive
from steerboard_contracts.metric_order import PAIR_METRICS
from steerboard_contracts.models import POLICIES
from steerboard_contracts.samples import Finite
from steerboard_contracts.specs.method import MethodSpec
from steerboard_contracts.training import TrainingConfig

WORKFLOW = {"source": "RLHF Workflow, arXiv 2405.07863, Section 2.3"}


class PreferenceModelConfig(TrainingConfig):
    """Section 2.3 of arXiv 2405.07863: a language model that answers which of two responses is better."""

    method: Annotated[Literal["preference_model"], Field(description="The training method.")]
    lr: Annotated[LearningRate, Field(json_schema_extra=WORKFLOW)] = 5e-6
    epochs: Annotated[
        Positive,
        Field(description="Passes over the training rows; may be a fraction.", json_schema_extra=WORKFLOW),
    ] = 1.0
    warmup_ratio: Annotated[
        Finite,
        Field(
            ge=0,
            le=1,
            description="Share of the steps in which the learning rate rises to its peak.",
            json_schema_extra={
                "source": "RLHF Workflow, arXiv 2405.07863, Section 2.3: cosine, warm-up 0.03. The authors' script "
                "warms up for 40 steps instead, however many there are"
            },
        ),
    ] = 0.03


SPEC = MethodSpec(
    name="preference_model",
    title="Pairwise preference model",
    label="Preference model",
    about="Learn to answer which of two responses people prefer, having read both.",
    source="arXiv 2405.07863, Section 2.3",
    config=PreferenceModelConfig,
    training="steerboard_workers.alignment.methods.preference_model:PreferenceModelling",
    data=("preferences",),
    use="Train a pairwise preference model on it",
    outputs=("preference",),
    starts_from=POLICIES | {"preference"},
    leaves_out="equal_sides",
    first_metrics=PAIR_METRICS,
    place=25,
)
