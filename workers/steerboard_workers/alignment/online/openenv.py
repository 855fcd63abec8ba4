"""Rollouts with an OpenEnv server: a session for each, all asked at the same time.

A session that ends too early is opened again, begins by the same seed and hears the earlier answers once more. Where
that brings other steps than before, the rollout is no longer what the model has seen, and is lost.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.network.addresses import AllowList
from steerboard_contracts.network.safe_http import check_url, refuse_private
from steerboard_contracts.online.environments import OpenEnvServer
from steerboard_workers.alignment.online.environment_protocol import Call, EnvironmentFailed, Step
from steerboard_workers.alignment.online.openenv_session import Refused, Session, SessionLost, WrongReply
from steerboard_workers.alignment.online.openenv_steps import first_step, next_step, reset_data
from steerboard_workers.alignment.online.sandbox import SHOWN

# Before a session is opened again.
WAITS = (0.25, 0.5, 1.0, 2.0)
_INVALID = "VALIDATION_ERROR"
_LOST = Step(lost=True)

Value = TypeVar("Value")


class EnvironmentServerFailed(SteerboardError):
    """The server cannot be reached, or ends its sessions."""

    code = "environment_server_failed"
    status = 502
    title = "The environment's server failed"


@dataclass
class _Rollout:
    """`steps`: of the reset and of each answer so far; the `session` has made the first `heard` of them. `problem`: why
    the last session ended."""

    steps: list[Step] = field(default_factory=list)
    session: Session | None = None
    heard: int = 0
    problem: SessionLost | None = None


class OpenEnv:
    def __init__(self, config: OpenEnvServer, allowed_private: str) -> None:
        """Raises `BadUrl`, `AddressRefused`."""
        self._config = config
        self._allowed = AllowList(allowed_private)
        self._url = check_url(config.url)
        refuse_private(self._allowed, self._url)
        self._rollouts: dict[int, _Rollout] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def step(self, calls: Sequence[Call], most_lost: int) -> list[Step]:
        """The steps of `Environment.step`. Rollouts that have no session any more are lost, as those that take too long
        are.

        Raises `EnvironmentFailed` with the answer, `AddressRefused`, and `EnvironmentServerFailed` once more than
        `most_lost` have no session."""
        if not calls:
            return []
        outcomes = self._run(self._all(calls))
        without = [outcome for outcome in outcomes if isinstance(outcome, SessionLost)]
        if len(without) > most_lost:
            full = next((problem for problem in without if problem.full), None)
            enough = f"Let it take {len(calls)} sessions (max_concurrent_envs), or lower batch or answers."
            raise EnvironmentServerFailed(
                f"{self._url}: {full or without[0]}", hint=enough if full else "Check the server, then resume the run."
            )
        return [_LOST if isinstance(outcome, SessionLost) else outcome for outcome in outcomes]

    def end(self) -> None:
        if self._rollouts:
            self._run(self._forget(list(self._rollouts)))

    def _run(self, work: Coroutine[Any, Any, Value]) -> Value:
        """Sessions live on a thread of their own, which answers the server's pings between two calls."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, name="openenv", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _all(self, calls: Sequence[Call]) -> list[Step | SessionLost]:
        """Raises the first failure in the order of the calls, once each has an outcome."""
        going = {call.key for call in calls if call.answers}
        await self._forget([key for key in self._rollouts if key not in going])
        given = await asyncio.gather(*(self._one(call) for call in calls), return_exceptions=True)
        outcomes: list[Step | SessionLost] = []
        for outcome in given:
            if isinstance(outcome, BaseException) and not isinstance(outcome, SessionLost):
                raise outcome
            outcomes.append(outcome)
        by_key = {call.key: outcome for call, outcome in zip(calls, outcomes, strict=True)}
        for key, outcome in by_key.items():
            if isinstance(outcome, SessionLost) or outcome.lost:
                self._abandon(self._rollouts.pop(key))
        await self._forget([key for key, outcome in by_key.items() if isinstance(outcome, Step) and outcome.done])
        return outcomes

    async def _one(self, call: Call) -> Step:
        """Raises `EnvironmentFailed`, `SessionLost`, `AddressRefused`."""
        rollout = self._rollouts.setdefault(call.key, _Rollout())
        try:
            async with asyncio.timeout(self._config.seconds):
                return await self._persistent(rollout, call)
        except TimeoutError:
            if rollout.problem is not None:
                raise rollout.problem from None
            return _LOST
        except (Refused, WrongReply) as error:
            answer = f"on the answer {call.answers[-1][:SHOWN]!r}" if call.answers else "on reset"
            raise EnvironmentFailed(
                f"{self._url}: {error}, {answer} of row {call.row.get('row')}",
                hint="Check the fields of `environment` against the server's /schema, and the server's log.",
            ) from None

    async def _persistent(self, rollout: _Rollout, call: Call) -> Step:
        for wait in (*WAITS, None):
            try:
                return await self._heard(rollout, call)
            except SessionLost as problem:
                rollout.problem = problem
                self._abandon(rollout)
                if wait is None:
                    raise
                await asyncio.sleep(wait)
        raise AssertionError

    async def _heard(self, rollout: _Rollout, call: Call) -> Step:
        """Raises `SessionLost`, `Refused`, `WrongReply`, `AddressRefused`."""
        if rollout.session is None:
            rollout.session = await Session.open(self._url, self._allowed, self._config.seconds)
            rollout.heard = 0
        while rollout.heard <= len(call.answers):
            step = await self._next(rollout.session, rollout.heard, call)
            if rollout.heard == len(rollout.steps):
                rollout.steps.append(step)
            elif step != rollout.steps[rollout.heard]:
                return _LOST
            rollout.heard += 1
        rollout.problem = None
        return rollout.steps[len(call.answers)]

    async def _next(self, session: Session, heard: int, call: Call) -> Step:
        """The reset, or the step of the last of `heard` answers."""
        config = self._config
        if heard == 0:
            return first_step(config, call.row, await session.ask("reset", reset_data(config, call.row)))
        try:
            data = await session.ask("step", config.action_of(call.answers[heard - 1]))
        except Refused as refused:
            if refused.code != _INVALID or config.invalid_reward is None:
                raise
            return Step((), config.invalid_reward, done=True)
        return next_step(config, data)

    async def _forget(self, keys: Sequence[int]) -> None:
        sessions = [self._rollouts.pop(key).session for key in keys]
        await asyncio.gather(*(session.close() for session in sessions if session is not None))

    def _abandon(self, rollout: _Rollout) -> None:
        session, rollout.session = rollout.session, None
        if session is not None:
            session.abandon()
