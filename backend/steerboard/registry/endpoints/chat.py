"""Asking a model behind an endpoint: how it is reached, what it is asked, what comes back, and who asks it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from steerboard.platform.settings import Settings
from steerboard_contracts.decoding import no_guidance


@dataclass(frozen=True)
class Connection:
    """How an endpoint is reached. `step_seconds` bound each step (connect, each read and write), `total_seconds` the
    whole call."""

    settings: Settings
    base_url: str
    key: str | None = field(repr=False)
    step_seconds: float
    total_seconds: float


@dataclass(frozen=True)
class ChatRequest:
    """One request, in no provider's words. A field that is not given is left to the server: not every one knows all.

    `top_logprobs`: how many of the likeliest first tokens are wanted, with their weights. `score_text` (as
    `ConditionFormat.text` writes it) asks a policy for that score or condition, the empty string for an answer without
    any, None for the default of its chat template. `guidance`: see `guidance_of`.
    """

    model: str
    messages: Sequence[dict[str, str]]
    temperature: float
    max_tokens: int
    top_p: float | None = None
    top_k: int | None = None
    stop: Sequence[str] = ()
    seed: int | None = None
    top_logprobs: int | None = None
    score_text: str | None = None
    guidance: float | None = None


@dataclass(frozen=True)
class Completion:
    """A whole answer. `finish_reason` as the endpoint names it (`stop`, `length`); tokens where it counted them;
    `logprobs` as OpenAI's API gives them, cut to the first token."""

    content: str
    finish_reason: str | None = None
    logprobs: dict[str, Any] | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True)
class Finish:
    """The end of an answer that came in pieces."""

    reason: str | None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Provider(Protocol):
    """Asks one endpoint; see `providers`. Nothing that the endpoint sends is trusted, and no attempt is repeated here.

    All raise `EndpointRefused`, `EndpointUnreachable` and `EndpointNonsense`. Several threads may use one at once.
    """

    def complete(self, request: ChatRequest) -> Completion:
        """The answer in one piece; an address that may not be called is an `EndpointRefused`, too."""

    def stream(self, request: ChatRequest) -> Generator[str | Finish, None, None]:
        """The answer in pieces of text, then one `Finish`. Closing the iterator ends the request. Raises
        `AddressRefused`, too.

        The one space that a template may put before an answer is gone, as it is from those of our own engines: a
        reward model would take an answer with two spaces before it for another one.
        """

    def list_models(self) -> list[str]:
        """The models that it serves, at most 1000, by the names that requests have. Raises `AddressRefused`, too."""


def guidance_of(guides: bool, guidance: float, name: str) -> float | None:
    """The guidance that a request asks for, None where there is none. `guides`: the endpoint `name` takes it. Raises
    `BadInput` (`no_guidance`): a server that does not know it would answer unguided."""
    if guidance == 1:
        return None
    if not guides:
        raise no_guidance(guidance, f"from endpoint {name!r}, which decodes by itself")
    return guidance
