"""A process reward model: whether each step of an answer is right (arXiv 2305.20050)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from steerboard_contracts.fields import LearningRate, Positive
from steerboard_contracts.models import POLICIES, Aggregate
from steerboard_contracts.specs.method import MethodSpec
from steerboard_contracts.training import TrainingConfig


def _spelled(separator: str) -> str:
    """A line break and a tab as \\n and \\t: forms have one line."""
    if "\x00" in separator:
        raise ValueError("contains a NUL character")
    return separator.replace("\n", r"\n").replace("\t", r"\t")


class ProcessRewardModelConfig(TrainingConfig):
    """Binary cross-entropy at the last token of each step, as TRL's PRMTrainer learns."""

    method: Annotated[Literal["process_reward_model"], Field(description="The training method.")]
    lr: LearningRate = 1e-5
    epochs: Annotated[Positive, Field(description="Passes over the training rows; may be a fraction.")] = 1.0
    separator: Annotated[
        str,
        AfterValidator(_spelled),
        Field(
            min_length=1,
            max_length=64,
            description="What ends each step but the last; `\\n` is a line break, `\\t` a tab. Answers that are scored "
            "later are divided by it, too.",
        ),
    ] = r"\n"
    last_step_only: Annotated[
        bool, Field(description="Learn the label of the last step alone, as an outcome reward model does.")
    ] = False
    aggregate: Annotated[
        Aggregate,
        Field(
            description="How the probabilities of an answer's steps become its reward.",
            json_schema_extra={"source": "minimum: arXiv 2312.08935; product: 2305.20050"},
        ),
    ] = "min"

    @property
    def divider(self) -> str:
        """The separator as answers have it."""
        return self.separator.replace(r"\n", "\n").replace(r"\t", "\t")


SPEC = MethodSpec(
    name="process_reward_model",
    title="Process reward model",
    about="Learn which steps of an answer are right.",
    source="arXiv 2305.20050; 2312.08935",
    config=ProcessRewardModelConfig,
    training="steerboard_workers.alignment.methods.process_reward_model:ProcessRewardModelling",
    data=("stepwise",),
    use="Train a process reward model on it",
    outputs=("reward",),
    # It may also start from a reward model.
    starts_from=POLICIES | {"reward"},
    reads="ends",
    form=("separator", "aggregate"),
    first_metrics=(
        *("eval_step_accuracy", "step_accuracy", "eval_first_wrong_accuracy", "first_wrong_accuracy"),
        *("eval_loss", "loss"),
    ),
    place=25,
)
