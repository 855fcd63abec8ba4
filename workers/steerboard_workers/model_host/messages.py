"""What the playground's worker asks of a model's process, and what that answers: JSON, a line each.

One request at a time. Its answers end with `Done` or `Failure`; `Stop` ends it early.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from steerboard_contracts.decoding import Decoding
from steerboard_contracts.stage.events import Failed
from steerboard_contracts.turns import Message
from steerboard_workers.engines.protocol import Delta
from steerboard_workers.engines.protocol import Request as Prompted


class Load(BaseModel):
    """The first request: take up the model in `folder`, which writes texts or gives rewards."""

    type: Literal["load"] = "load"
    folder: str
    task: Literal["generate", "score"]


class Generate(BaseModel):
    """Answered by `Written`, piece by piece."""

    type: Literal["generate"] = "generate"
    requests: list[Prompted]
    decoding: Decoding
    seed: int


class Score(BaseModel):
    """(prompt, answer) pairs, answered by one `Scored`."""

    type: Literal["score"] = "score"
    samples: list[tuple[list[Message], str]]


class Stop(BaseModel):
    """The caller no longer waits. The current request ends with `Done` as soon as it can."""

    type: Literal["stop"] = "stop"


class Ready(BaseModel):
    """Everything is imported. The first word, before any request."""

    type: Literal["ready"] = "ready"
    device: Literal["cpu", "cuda"]


class Loaded(BaseModel):
    """Bytes of the weights, and of its device's memory in all (0: the machine's)."""

    type: Literal["loaded"] = "loaded"
    size: int
    device_memory: int


class Written(BaseModel):
    type: Literal["written"] = "written"
    delta: Delta


class Scored(BaseModel):
    """One raw reward for each sample, in their order; possibly NaN."""

    model_config = ConfigDict(ser_json_inf_nan="constants")

    type: Literal["scored"] = "scored"
    rewards: list[float]


class Done(BaseModel):
    type: Literal["done"] = "done"


class Failure(BaseModel):
    """`ends`: the process cannot be relied on any more, and ends itself."""

    type: Literal["failure"] = "failure"
    failed: Failed
    ends: bool


Request = Load | Generate | Score
REQUEST: TypeAdapter[Request | Stop] = TypeAdapter(Annotated[Request | Stop, Field(discriminator="type")])
Answer = Ready | Loaded | Written | Scored | Done | Failure
ANSWER: TypeAdapter[Answer] = TypeAdapter(Annotated[Answer, Field(discriminator="type")])
