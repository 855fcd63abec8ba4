"""A reward model by Bradley and Terry's model of choices: Eq. 2 of arXiv 2308.12050."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import LearningRate, NonNegative, Positive
from steerboard_contracts.metric_order import PAIR_METRICS
from steerboard_contracts.models import POLICIES
from steerboard_contracts.prompt_split import Half
from steerboard_contracts.specs.method import MethodSpec
from steerboard_contracts.training import PAPER, TrainingConfig
from steerboard_contracts.watching.inspected_pairs import InspectPairs


class RewardModelConfig(TrainingConfig):
    """Eq. 2 of arXiv 2308.12050, with an optional margin and centring term."""

    method: Annotated[Literal["reward_model"], Field(description="The training method.")]
    lr: Annotated[LearningRate, Field(json_schema_extra=PAPER)] = 9e-6
    epochs: Annotated[
        Positive,
        Field(description="Passes over the training rows; may be a fraction.", json_schema_extra=PAPER),
    ] = 1.0
    centre: Annotated[NonNegative, Field(description="Weight that centres rewards on 0: lambda of (r_w + r_l)^2.")] = (
        0.0
    )
    use_margin: Annotated[bool, Field(description="Ask for a difference as large as the pair's margin.")] = False
    share_prompt: Annotated[bool, Field(description="Compute the prompt of a pair once.")] = True
    inspect_pairs: InspectPairs = 64
    half: Annotated[Half | None, Field(description="Train on one of two disjoint halves of the prompts.")] = None


SPEC = MethodSpec(
    name="reward_model",
    title="Reward model",
    about="Learn which of two answers people prefer (Bradley-Terry).",
    source="arXiv 2308.12050, Eq. 2",
    config=RewardModelConfig,
    training="steerboard_workers.alignment.methods.reward_model:RewardModelling",
    data=("preferences",),
    use="Train a reward model on it",
    outputs=("reward",),
    # It may also start from another one.
    starts_from=POLICIES | {"reward"},
    sequences=2,
    reads="ends",
    leaves_out="equal_sides",
    form=("centre", "use_margin"),
    first_metrics=PAIR_METRICS,
    place=20,
)
