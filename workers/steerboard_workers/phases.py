"""The use of a stage's time: a clock of the phases of the cost ledger. Without torch, which some stages lack."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from steerboard_contracts.watching.ledger import Phase, PhaseTime


class Phases:
    """The phases of one process. `settle`, called before a phase ends, waits for what its devices still compute."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.settle: Callable[[], None] = lambda: None
        self._clock = clock
        self._spent: dict[Phase, PhaseTime] = {}
        self._taken: dict[Phase, PhaseTime] = {}
        self._open: tuple[Phase, PhaseTime] | None = None
        self._since = 0.0

    @contextmanager
    def measure(self, name: Phase) -> Iterator[PhaseTime]:
        """Adds to the phase of this name, with the tokens that the caller puts into what it is given. A phase inside
        another is part of the outer one, so that no second counts twice: what an evaluation samples is `evaluate`."""
        mine = PhaseTime()
        if self._open is not None:
            outer = self._open[1]
            try:
                yield mine
            finally:
                outer.tokens += mine.tokens
            return
        self._open, self._since = (name, mine), self._clock()
        try:
            yield mine
        finally:
            try:
                self.settle()
            finally:
                self._spent, self._open = self.so_far(), None

    @contextmanager
    def apart(self, name: Phase, *, within: Phase) -> Iterator[PhaseTime]:
        """`measure` of what happens inside the phase `within` and is no part of it. Inside any other one it is."""
        if self._open is None or self._open[0] != within:
            with self.measure(name) as mine:
                yield mine
            return
        outer = self._open
        self.settle()
        self._spent, self._open = self.so_far(), None
        outer[1].tokens = 0  # these are counted
        try:
            with self.measure(name) as mine:
                yield mine
        finally:
            self._open, self._since = outer, self._clock()

    def so_far(self) -> dict[Phase, PhaseTime]:
        """All phases since the process began, with what has passed of the open one."""
        spent = {name: phase.model_copy() for name, phase in self._spent.items()}
        if self._open is not None:
            name, mine = self._open
            phase = spent.setdefault(name, PhaseTime())
            phase.seconds += self._clock() - self._since
            phase.tokens += mine.tokens
        return spent

    def take(self) -> dict[str, float]:
        """`NAME_seconds` and `NAME_tokens` of what was measured since the last call."""
        now = self.so_far()
        before, self._taken = self._taken, now
        spent: dict[str, float] = {}
        for name, phase in now.items():
            taken = before.get(name, PhaseTime())
            if phase.seconds > taken.seconds:
                spent[f"{name}_seconds"] = phase.seconds - taken.seconds
            if phase.tokens > taken.tokens:
                spent[f"{name}_tokens"] = float(phase.tokens - taken.tokens)
        return spent
