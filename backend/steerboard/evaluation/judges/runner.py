"""A judge at work: questions to the endpoint in threads, answers kept, verdicts read, until nothing is left to ask."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from steerboard.evaluation.judges.request_locks import RequestLocks
from steerboard.evaluation.judges.requests import JudgeVerdict, Question, failures, outcomes
from steerboard.evaluation.judges.spending.budget import JudgeBudget
from steerboard.registry.endpoints.chat import Completion, Provider
from steerboard.registry.endpoints.failures import ChatFailed
from steerboard.registry.endpoints.rate_limit import Pace

log = logging.getLogger(__name__)

_LOOK_AGAIN_SECONDS = 0.3
# So many questions given up one after the other, with none answered between them: the endpoint is not there.
_HOPELESS = 10


class EndpointDown(Exception):
    """Nothing is answered any more. `failure` is the last one."""

    def __init__(self, failure: ChatFailed) -> None:
        super().__init__(str(failure))
        self.failure = failure


class _Stopped(Exception):
    """Another thread has ended the work."""


@dataclass
class AttemptCounts:
    """The counts of this attempt: questions that have verdicts, those by status, and failures of requests by code."""

    judged: int = 0
    paid: int = 0
    cached: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)


class RunnerStore(Protocol):
    """What a runner looks up and keeps: `persistence.JudgeStore`, or `reward_judges.persistence.RewardStore`."""

    def answer(self, key: str) -> Completion | None: ...

    def keep_answer(
        self, key: str, answer: Completion, seconds: float, *, attempts: int = 1, known: float = 0.0
    ) -> None: ...

    def keep_verdicts(
        self, question: Question, rows: Sequence[JudgeVerdict], key: str | None, raw: str | None
    ) -> None: ...

    def note_failure(self, code: str) -> None: ...


class Runner:
    """Asks each key once, however many questions have it. `say` gets lines for the run's log."""

    def __init__(
        self,
        judge_store: RunnerStore,
        provider: Provider,
        pace: Pace,
        request_locks: RequestLocks,
        judge_budget: JudgeBudget,
        *,
        attempts: int,
        patience: float,
        stopping: threading.Event,
        say: Callable[[str], None],
    ) -> None:
        self.counts = AttemptCounts()
        self._judge_store, self._provider, self._pace, self._request_locks = judge_store, provider, pace, request_locks
        self._judge_budget = judge_budget
        self._attempts, self._patience = attempts, patience
        self._stopping, self._say = stopping, say
        self._lock, self._taking = threading.Lock(), threading.Lock()
        self._failure: BaseException | None = None
        self._given_up = 0

    def run(self, questions: Iterable[tuple[str, Question]], threads: int, watch: Callable[[], None]) -> None:
        """Judges until nothing is left. `watch` is called a few times a second meanwhile.

        Raises `BudgetReached`, `EndpointDown`, `LeaseLost`, `Gone`, and the database's errors when it stays away.
        """
        waiting = iter(questions)
        working = [
            threading.Thread(target=self._work, args=(waiting,), name=f"judge-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in working:
            thread.start()
        for thread in working:
            while thread.is_alive():
                thread.join(0.2)
                watch()
        if self._failure is not None:
            raise self._failure

    def _work(self, waiting: Iterator[tuple[str, Question]]) -> None:
        try:
            while not self._stopping.is_set():
                with self._taking:
                    following = next(waiting, None)
                if following is None:
                    return
                self._settle(*following)
        except _Stopped:
            return
        except BaseException as error:
            with self._lock:
                self._failure = self._failure or error
            self._stopping.set()

    def _settle(self, key: str, question: Question) -> None:
        known = self._judge_store.answer(key)
        try:
            answer, paid = (known, False) if known is not None else self._ask(key, question)
        except ChatFailed as failure:
            rows = failures(question, failure.reason, failure.detail)
            self._judge_store.keep_verdicts(question, rows, None, None)
            self._count(question, rows)
            self._give_up(failure)
            return
        rows = outcomes(question, answer)
        self._judge_store.keep_verdicts(question, rows, key, answer.content)
        self._count(question, rows, paid=paid, cached=not paid)

    def _ask(self, key: str, question: Question) -> tuple[Completion, bool]:
        """An answer that is kept, and whether it was paid for now. Raises `ChatFailed` after the last attempt."""
        attempt = 1
        while True:
            self._wait_for_turn(key)
            try:
                known = self._judge_store.answer(key)  # another run may just have got it
                if known is not None:
                    return known, False
                if not self._pace.wait():
                    raise _Stopped
                answer = self._paid_answer(key, question, attempt)
            except ChatFailed as failure:
                self._note(question, failure, attempt)
                if not failure.retryable or attempt >= self._attempts:
                    raise
                rest = self._pace.rest(failure, attempt)
            else:
                with self._lock:
                    self._given_up = 0
                return answer, True
            finally:
                self._request_locks.free(key)
            if self._stopping.wait(rest):
                raise _Stopped
            attempt += 1

    def _paid_answer(self, key: str, question: Question, attempt: int) -> Completion:
        reserved = self._judge_budget.reserve(question.request)
        if reserved is None:
            raise _Stopped
        began = time.monotonic()
        try:
            answer = self._provider.complete(question.request)
        except ChatFailed as failure:
            if failure.perhaps_billed:
                self._judge_budget.end(reserved)
            else:
                self._judge_budget.refused(reserved)
            raise
        seconds = time.monotonic() - began
        known = self._judge_budget.known(reserved, answer)
        self._judge_store.keep_answer(key, answer, seconds, attempts=attempt, known=known)
        self._judge_budget.end(reserved)
        return answer

    def _wait_for_turn(self, key: str) -> None:
        """Waits while another thread or judge asks the same; not for ever, should its machine have gone."""
        until = time.monotonic() + self._patience
        while not self._request_locks.take(key) and time.monotonic() < until:
            if self._stopping.wait(_LOOK_AGAIN_SECONDS):
                raise _Stopped

    def _note(self, question: Question, failure: ChatFailed, attempt: int) -> None:
        self._judge_store.note_failure(failure.reason)
        with self._lock:
            self.counts.failures[failure.reason] += 1
        self._say(
            f"prompt {question.position}, turn {question.turn}: {failure.reason}: {failure.detail} "
            f"(attempt {attempt} of {self._attempts})"
        )

    def _give_up(self, failure: ChatFailed) -> None:
        with self._lock:
            self._given_up += 1
            hopeless = self._given_up >= _HOPELESS
        if hopeless:
            raise EndpointDown(failure)

    def _count(
        self, question: Question, rows: Iterable[JudgeVerdict], *, paid: bool = False, cached: bool = False
    ) -> None:
        with self._lock:
            self.counts.judged += 1
            self.counts.paid += paid
            self.counts.cached += cached
            if not question.repeat:
                self.counts.statuses.update(row.status for row in rows)
