"""What the harness of an academic run and the process that asks an endpoint for it send each other, a JSON line each.

The harness runs Python code of tasks, and so it never holds the endpoint's key: it is started with one end of a socket
as its standard input, and the process at the other end asks.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from steerboard_contracts.decoding import Decoding
from steerboard_contracts.stage.events import Failed

MOST_AT_ONCE = 32
"""Questions that may be under way."""

LONGEST_LINE = 16 << 20
"""Bytes of a question or a reply."""


class ChatTurn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    role: Annotated[str, Field(max_length=50)]
    content: str


class Question(BaseModel):
    """A question to be answered by one `Reply` of the same number, in any order."""

    model_config = ConfigDict(extra="forbid")

    number: Annotated[int, Field(ge=0)]
    messages: Annotated[list[ChatTurn], Field(min_length=1)]
    decoding: Decoding
    seed: Annotated[int, Field(ge=0)]


class Reply(BaseModel):
    """`failed` in place of the answer: no further question is asked."""

    number: int
    text: str = ""
    failed: Failed | None = None
