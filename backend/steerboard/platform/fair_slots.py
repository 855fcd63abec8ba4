"""Slots that callers share: none takes all of them, and those who wait are served in rotation."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque

# The server's own work, such as the feed that all readers of a project share. No share limits it.
PLATFORM = ""


class FairSlots:
    """`at_once` slots, of which one caller has at most `share`. Lives in one event loop."""

    def __init__(self, at_once: int, share: int) -> None:
        self._free = at_once
        self._share = share
        self._held: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """Requests that wait for a slot."""
        return sum(map(len, self._waiting.values()))

    def take_now(self, caller: str) -> bool:
        """Whether there was a slot for the caller, who has it then."""
        # Where a slot is free, all who wait have their share already.
        if not self._free or not self._may_take(caller):
            return False
        self._free -= 1
        self._held[caller] += 1
        return True

    async def take(self, caller: str) -> None:
        """Waits for a slot. When cancelled, the caller has none."""
        if self.take_now(caller):
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(caller, turn)
            else:
                self.give_back(caller)
            raise

    def give_back(self, caller: str) -> None:
        self._free += 1
        self._held[caller] -= 1
        if not self._held[caller]:
            del self._held[caller]
        while (following := next(filter(self._may_take, self._waiting), None)) is not None and self._free:
            turn = self._waiting[following][0]
            self._forget(following, turn)
            if following in self._waiting:
                self._waiting.move_to_end(following)
            self.take_now(following)
            turn.set_result(None)

    def _may_take(self, caller: str) -> bool:
        return caller == PLATFORM or self._held[caller] < self._share

    def _forget(self, caller: str, turn: asyncio.Future[None]) -> None:
        self._waiting[caller].remove(turn)
        if not self._waiting[caller]:
            del self._waiting[caller]
