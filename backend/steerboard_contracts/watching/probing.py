"""Prompts that the model in training answers at each evaluation of its run, and the answers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field, model_validator

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.fields import Config
from steerboard_contracts.turns import TurnText

MOST_PROMPTS = 16
# The most steps of a run, the start included: with more evaluations, only some of them are answered at.
MOST_STEPS = 50
# The number of a prompt's last characters that are kept.
MOST_CHARACTERS = 2000


class ProbeConfig(Config):
    """Prompts to answer at each evaluation, and by the model that training starts from; greedily."""

    held_out: Annotated[
        int, Field(ge=0, le=MOST_PROMPTS, description="Prompts of held-out rows, drawn once for the run.")
    ] = 4
    prompts: Annotated[
        list[TurnText],
        Field(
            default=[],
            max_length=MOST_PROMPTS,
            description="Further prompts of one user turn, such as those of other runs.",
        ),
    ]
    max_new_tokens: Annotated[int, Field(ge=1, le=512, description="Tokens of an answer; longer ones are cut.")] = 64
    score: Annotated[
        Condition | None,
        Field(description="Score requested if the method's policies take one; their default otherwise."),
    ] = None

    @model_validator(mode="after")
    def _some(self) -> ProbeConfig:
        if not self.held_out and not self.prompts:
            raise ValueError("there is nothing to answer: give held_out or prompts")
        return self


class ProbePrompt(BaseModel):
    """`row`: of the dataset, None for a prompt of the config. Long prompts are cut from the front."""

    row: int | None
    messages: list[dict[str, Any]]


class ProbeAnswer(BaseModel):
    """`finished`: the model ended it, the token limit did not."""

    text: str
    tokens: int
    finished: bool
