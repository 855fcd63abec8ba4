"""A chat completion as it is asked for."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from steerboard.openai_api.errors import refuse_others, unsupported
from steerboard.playground.schemas import ColumnIn, ComparisonIn, PlaygroundDecoding
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.turns import Message

MOST_CHOICES = 8
# With these values OpenAI's fields ask for what happens anyway; `user` and the like only say who asks.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "tools": ([],),
    "functions": ([],),
    "tool_choice": ("none",),
    "function_call": ("none",),
    "parallel_tool_calls": (False, True),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "store": (False,),
    "service_tier": ("auto", "default"),
    "metadata": ({},),
}
_SAYS_WHO = ("user", "safety_identifier", "prompt_cache_key")
_PARTS = ("text", "output_text", "input_text")


class ChatMessage(BaseModel):
    """Text alone. Null fields, as an answer has them that is sent back, say nothing."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["system", "developer", "user", "assistant"]
    content: str

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if name in ("role", "content") or value not in (None, [])}

    @field_validator("content", mode="before")
    @classmethod
    def _joined(cls, given: Any) -> Any:
        if not isinstance(given, list):
            return given
        for part in given:
            if not isinstance(part, dict) or part.get("type") not in _PARTS or not isinstance(part.get("text"), str):
                raise ValueError("only parts of type text can be read")
        return "".join(part["text"] for part in given)

    @property
    def plain(self) -> Message:
        return Message(role="system" if self.role == "developer" else self.role, content=self.content)


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="forbid")

    include_usage: bool = False
    include_obfuscation: bool | None = None


class ChatIn(BaseModel):
    """`score`, `guidance` and `top_k` are ours: see `playground.schemas.ColumnIn`. What nothing here follows is refused
    by name (`check`)."""

    model_config = ConfigDict(extra="allow")

    model: Annotated[str, Field(min_length=1, max_length=300)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=1000)]
    score: Condition | None = None
    guidance: float | None = None
    top_k: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: Annotated[int, Field(ge=1, le=MOST_CHOICES)] | None = None
    stop: str | list[str] | None = None
    seed: Annotated[int, Field(ge=-(2**52), le=2**52)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    @property
    def choices(self) -> int:
        return self.n or 1

    def check(self) -> None:
        """Raises `UnsupportedParameter`."""
        extra = {name: value for name, value in (self.model_extra or {}).items() if name not in _SAYS_WHO}
        refuse_others(extra, _NEUTRAL)
        if self.max_tokens is not None and self.max_completion_tokens not in (None, self.max_tokens):
            raise unsupported("max_tokens", "and `max_completion_tokens` differ; give one of them")
        if self.stream_options is not None and not self.stream:
            raise unsupported("stream_options", "is for streams: set `stream`")

    def comparison(self, seed: int, *, endpoint: bool) -> ComparisonIn:
        """One answer of the model, or of an endpoint of that name. Raises `ValidationError`."""
        given = {
            "temperature": 1.0 if self.temperature is None else self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "max_new_tokens": self.max_completion_tokens or self.max_tokens,
            "stop": [self.stop] if isinstance(self.stop, str) else self.stop,
            "guidance": self.guidance,
        }
        decoding = PlaygroundDecoding.model_validate(
            {name: value for name, value in given.items() if value is not None}
        )
        source = {"endpoint" if endpoint else "model": self.model}
        column = ColumnIn.model_validate({**source, "score": self.score, "decoding": decoding})
        return ComparisonIn(prompt=[message.plain for message in self.messages], columns=[column], seed=seed)
