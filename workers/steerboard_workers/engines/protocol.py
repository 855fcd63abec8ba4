"""What every text generation engine offers, whatever runs below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from steerboard_contracts.decoding import Decoding
from steerboard_contracts.turns import Message


@dataclass(frozen=True)
class Request:
    """One prompt to answer. `row` is its own: with the run's seed it decides the randomness of its answers.

    `score_text` is the condition as it is written (`5.00`, `helpfulness:4`), None for models without one.
    """

    row: int
    prompt: Sequence[Message | dict[str, str]]
    score_text: str | None = None


@dataclass(frozen=True)
class Completion:
    """Answer `n` to a request. `token_ids` are without the end token, `end` is that one where one was drawn; `finished`
    is False when a limit cut it. `prompt_tokens`: of the prompt that was read, where the engine counts them."""

    row: int
    n: int
    text: str
    token_ids: list[int]
    finished: bool
    end: int | None = None
    prompt_tokens: int | None = None

    @property
    def tokens(self) -> int:
        return len(self.token_ids)


@dataclass(frozen=True)
class Delta:
    """Text that an answer has gained, for showing it while it is written. The last one of an answer, whose text may be
    empty, has its `completion`."""

    row: int
    n: int
    text: str
    completion: Completion | None = None


class Engine(Protocol):
    def generate(
        self,
        requests: Sequence[Request],
        decoding: Decoding,
        seed: int,
        on_delta: Callable[[Delta], None] | None = None,
    ) -> Iterator[Completion]:
        """`decoding.n` completions of each request, in any order, each exactly once."""
        ...
