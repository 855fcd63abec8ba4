"""Environments that answer the answers of a model in training, as the config of a run has them: rollouts of several
turns. The worker's half is `alignment.online.environments`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from steerboard_contracts.fields import Config, Count, Positive
from steerboard_contracts.online.reward_rules import AllowedFile, FileHash
from steerboard_contracts.online.rewarded import RewardedOnlineConfig
from steerboard_contracts.samples import Finite

MOST_TURNS = 64


class EnvironmentConfig(Config):
    """An environment of a Python file: a class `Environment` with `reset(row)` and `step(answer)`, which runs as reward
    functions do."""

    kind: Annotated[Literal["python"], Field(description="What it is: `python`, a class in a file.")] = "python"
    file: AllowedFile
    sha256: FileHash
    max_turns: Annotated[
        int, Field(ge=1, le=MOST_TURNS, description="Answers of a rollout at most. max_new_tokens is of each.")
    ] = 4
    max_tokens: Annotated[
        Count | None,
        Field(
            description="No further turn once a rollout has so many tokens after its prompt, those of the environment "
            "included; by default what the model's window holds."
        ),
    ] = None
    weight: Annotated[Finite, Field(description="Factor of the environment's rewards.")] = 1.0
    seconds: Annotated[
        Positive,
        Field(le=600, description="Seconds per call; rollouts that had no reply by then are left out and counted."),
    ] = 30.0


class EpisodicConfig(RewardedOnlineConfig):
    """The config of methods that learn from rollouts of one turn or, with an environment, of several."""

    environment: Annotated[
        EnvironmentConfig | None,
        Field(description="Answers the model's answers, and rewards them: rollouts of several turns."),
    ] = None

    @property
    def rewards_outside(self) -> bool:
        return self.environment is not None or super().rewards_outside

    @property
    def further_rewards(self) -> list[float]:
        return [] if self.environment is None else [self.environment.weight]

    @model_validator(mode="after")
    def _episodes_are_whole(self) -> EpisodicConfig:
        if self.environment is None:
            return self
        if self.staleness:
            raise ValueError("an environment is asked between two turns, by the same weights: staleness must be 0")
        if self.shapes_length:
            raise ValueError(
                "overlong_tokens and overlong_share are of single answers: leave them out with environment"
            )
        return self
