"""Environments that answer the answers of a model in training, as the config of a run has them: rollouts of several
turns. The worker's half is `alignment.online.environment` and `alignment.online.openenv`."""

from __future__ import annotations

import copy
import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, model_validator

from steerboard_contracts.fields import Config, Count, Positive
from steerboard_contracts.online.reward_rules import AllowedFile, FileHash
from steerboard_contracts.online.rewarded import RewardedOnlineConfig
from steerboard_contracts.samples import Finite

MOST_TURNS = 64
# Characters of the JSON that each reset or each action repeats.
LONGEST_CONSTANTS = 10_000


def _sendable(value: dict[str, Any]) -> dict[str, Any]:
    try:
        text = json.dumps(value, allow_nan=False)
    except ValueError:
        raise ValueError("NaN and Infinity are not JSON") from None
    if len(text) > LONGEST_CONSTANTS:
        raise ValueError(f"has more than {LONGEST_CONSTANTS:,} characters as JSON")
    return value


FieldPath = Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")]
Constants = Annotated[dict[str, JsonValue], AfterValidator(_sendable)]


class _Environment(Config):
    """What environments of all kinds have."""

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


class PythonEnvironment(_Environment):
    """An environment of a Python file: a class `Environment` with `reset(row)` and `step(answer)`, which runs as reward
    functions do."""

    kind: Literal["python"] = "python"
    file: AllowedFile
    sha256: FileHash


class OpenEnvServer(_Environment):
    """A server of OpenEnv (`openenv-core`), asked over its WebSocket by a session for each rollout."""

    kind: Literal["openenv"]
    url: Annotated[
        str,
        Field(
            max_length=2000,
            pattern=r"^https?://[^\s@#?]+$",
            description="The server's address without `/ws`, without credentials and without a query.",
        ),
    ]
    action_field: Annotated[
        FieldPath,
        Field(
            description="The field of the action that has the text of the answer: `message`, or `arguments.text` for a "
            "field inside of another one."
        ),
    ]
    action: Annotated[
        Constants, Field(default_factory=dict, description="Further fields of every action, as they are.")
    ]
    observation_field: Annotated[
        FieldPath | None,
        Field(
            description="The field of the observation that the model reads: `text`, or `messages.-1.content`. By "
            "default it reads the whole observation as JSON."
        ),
    ] = None
    begin: Annotated[
        Literal["observation", "prompt", "both"],
        Field(
            description="What the model is asked first: the observation of the reset, the row's prompt, or the prompt "
            "with that observation behind it."
        ),
    ] = "observation"
    reset: Annotated[
        Constants, Field(default_factory=dict, description="What the reset is given besides the seed, as it is.")
    ]
    send_row: Annotated[
        bool, Field(description="Give the reset the row's number, `prompt` and `reference` answer, too.")
    ] = False
    invalid_reward: Annotated[
        Finite | None,
        Field(
            description="Reward of an answer that the server refuses as no valid action, which ends the rollout. "
            "Without it, such an answer fails the run."
        ),
    ] = None

    def action_of(self, answer: str) -> dict[str, Any]:
        """The action with an answer in its place. Raises ValueError where `action` has something else on the way."""
        action: dict[str, Any] = copy.deepcopy(self.action)
        *outer, last = self.action_field.split(".")
        inner = action
        for name in outer:
            inner = inner.setdefault(name, {})
            if not isinstance(inner, dict):
                raise ValueError(f"{name!r} of `action` is no object, and action_field is {self.action_field!r}")
        inner[last] = answer
        return action

    @model_validator(mode="after")
    def _fields_have_one_source(self) -> OpenEnvServer:
        self.action_of("")
        taken = {"seed"} | ({"row", "prompt", "reference"} if self.send_row else set())
        if given := sorted(taken & self.reset.keys()):
            raise ValueError(f"reset: the run gives {', '.join(given)} by the row; leave out what is given here")
        return self


def _python_by_default(given: Any) -> Any:
    return {"kind": "python", **given} if isinstance(given, dict) else given


EnvironmentConfig = Annotated[
    Annotated[PythonEnvironment | OpenEnvServer, Field(discriminator="kind")],
    BeforeValidator(_python_by_default),
]


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
