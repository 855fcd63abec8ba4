"""What a judge's requests cost, and how a budget stops it before it overspends.

A request is made only when an upper bound of its price still fits next to what was spent and what is under way. A token
is at least one byte of UTF-8, so the bound of a prompt is its bytes and a margin for the chat template.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from steerboard.evaluation.endpoint_client.answers import Answer
from steerboard.evaluation.judges.schemas import JudgeSettings

_MILLION = 1_000_000
# Role, separators and the opening of the answer, which chat templates add to a message.
_TEMPLATE_TOKENS = 32


class BudgetReached(Exception):
    """The next request could exceed the budget."""

    def __init__(self, limit: float, spent: float, needed: float) -> None:
        super().__init__(
            f"{spent:.6g} of the budget of {limit:g} is spent, and the next request may cost up to {needed:.6g}"
        )


@dataclass(frozen=True)
class Prices:
    """Of a million tokens, in any one currency."""

    prompt: float
    completion: float

    @classmethod
    def of(cls, settings: JudgeSettings) -> Prices | None:
        """None where no price is given; one that is missing is 0."""
        if settings.prompt_price is None and settings.completion_price is None:
            return None
        return cls(settings.prompt_price or 0.0, settings.completion_price or 0.0)

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / _MILLION

    def most(self, body: dict[str, Any]) -> float:
        """An upper bound for a chat completion's request."""
        tokens = sum(len(message["content"].encode()) + _TEMPLATE_TOKENS for message in body["messages"])
        return self.cost(tokens, int(body["max_tokens"]))


class Purse:
    """Shared by the threads of one judge. `spent`: by former attempts, uncertain costs included."""

    def __init__(self, prices: Prices | None, limit: float | None, spent: float = 0.0) -> None:
        self._prices, self._limit = prices, limit
        self._spent, self._reserved = spent, 0.0
        self._lock = threading.Lock()

    def reserve(self, body: dict[str, Any]) -> float:
        """The bound that is set aside for a request. Raises `BudgetReached` where it does not fit."""
        if self._prices is None:
            return 0.0
        needed = self._prices.most(body)
        with self._lock:
            if self._limit is not None and self._spent + self._reserved + needed > self._limit:
                raise BudgetReached(self._limit, self._spent + self._reserved, needed)
            self._reserved += needed
        return needed

    def settle(self, reserved: float, answer: Answer) -> float:
        """An answer has come. Returns the part of its cost that is a bound, since its tokens were not counted."""
        if self._prices is None:
            return 0.0
        if answer.prompt_tokens is None or answer.completion_tokens is None:
            return self.lose(reserved)
        self._move(reserved, self._prices.cost(answer.prompt_tokens, answer.completion_tokens))
        return 0.0

    def lose(self, reserved: float) -> float:
        """No answer came, though the endpoint may have billed one. Returns what counts as spent."""
        self._move(reserved, reserved)
        return reserved

    def release(self, reserved: float) -> None:
        """The endpoint has refused the request, and bills nothing."""
        self._move(reserved, 0.0)

    def _move(self, reserved: float, spent: float) -> None:
        with self._lock:
            self._reserved -= reserved
            self._spent += spent
