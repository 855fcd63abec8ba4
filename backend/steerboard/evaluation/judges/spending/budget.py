"""What a judge's requests cost, and how a budget stops it before it overspends.

A request is made only when an upper bound of its price still fits next to what was spent and what is under way. A token
is at least one byte of UTF-8, so the bound of a prompt is its bytes and a margin for the chat template. The bound is
written down as an uncertain cost before the request is sent, and taken back when the answer's tokens are known: of a
process that is killed, everything that it may have been billed for counts as spent.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Protocol

from steerboard.evaluation.judges.schemas import JudgeSettings
from steerboard.registry.endpoints.chat import ChatRequest, Completion

_MILLION = 1_000_000
# Role, separators and the opening of the answer, which chat templates add to a message.
_TEMPLATE_TOKENS = 32
# Multiples of a power of two are added and subtracted without rounding: of what is taken back nothing stays.
_STEP = 2.0**-30
_LOOK_AGAIN_SECONDS = 0.3


class BudgetReached(Exception):
    """The next request could exceed the budget. `reserved`: for requests under way, which may cost less."""

    def __init__(self, limit: float, spent: float, reserved: float, needed: float) -> None:
        under_way = f", up to {reserved:.6g} more is reserved for requests under way" if reserved else ""
        super().__init__(
            f"{spent:.6g} of the budget of {limit:g} is spent{under_way}, and the next request may cost up to "
            f"{needed:.6g}"
        )


@dataclass(frozen=True)
class Prices:
    """The prices of a million tokens, in any one currency."""

    prompt: float
    completion: float

    @classmethod
    def of(cls, settings: JudgeSettings) -> Prices | None:
        """Returns None where no price is given; one that is missing is 0."""
        if settings.prompt_price is None and settings.completion_price is None:
            return None
        return cls(settings.prompt_price or 0.0, settings.completion_price or 0.0)

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / _MILLION

    def most(self, request: ChatRequest) -> float:
        """An upper bound for a request."""
        tokens = sum(len(message["content"].encode()) + _TEMPLATE_TOKENS for message in request.messages)
        return math.ceil(self.cost(tokens, request.max_tokens) / _STEP) * _STEP


class Books(Protocol):
    """The place where costs are written down for good (`judges.persistence`)."""

    def reserve(self, cost: float, limit: float | None) -> float | None: ...

    def take_back(self, cost: float) -> None: ...


class JudgeBudget:
    """Shared by the threads of one judge; what is spent, also by others with the same budget, `books` know."""

    def __init__(self, prices: Prices | None, limit: float | None, books: Books, stopping: threading.Event) -> None:
        self._prices, self._limit = prices, limit
        self._books, self._stopping = books, stopping
        self._under_way = 0.0
        self._changed = threading.Condition()

    def reserve(self, request: ChatRequest) -> float | None:
        """The bound that is set aside for a request, when it fits: requests under way may leave room, and are waited
        for. None when `stopping` is set. Raises `BudgetReached` where it does not fit whatever they cost."""
        if self._prices is None:
            return 0.0
        needed = self._prices.most(request)
        with self._changed:
            while not self._stopping.is_set():
                taken = self._books.reserve(needed, self._limit)
                if taken is None:
                    self._under_way += needed
                    return needed
                assert self._limit is not None
                spent = taken - self._under_way
                if not self._under_way or spent + needed > self._limit:
                    raise BudgetReached(self._limit, spent, self._under_way, needed)
                while not self._changed.wait(_LOOK_AGAIN_SECONDS) and not self._stopping.is_set():
                    pass
        return None

    def known(self, reserved: float, answer: Completion) -> float:
        """How much of what was reserved the answer's own tokens replace: nothing, where they were not counted."""
        counted = answer.prompt_tokens is not None and answer.completion_tokens is not None
        return reserved if counted else 0.0

    def end(self, reserved: float) -> None:
        """The request has ended, and the books know what it cost."""
        with self._changed:
            self._under_way -= reserved
            self._changed.notify_all()

    def refused(self, reserved: float) -> None:
        """The endpoint has refused the request, and bills nothing."""
        if reserved:
            self._books.take_back(reserved)
        self.end(reserved)
