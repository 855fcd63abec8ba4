"""The judges of one run at work: groups of answers in, rewards out."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.evaluation.judges.request_locks import RequestLocks
from steerboard.evaluation.judges.runner import EndpointDown, Runner
from steerboard.evaluation.judges.schemas import JudgeSettings
from steerboard.evaluation.judges.spending.budget import BudgetReached, JudgeBudget, Prices
from steerboard.evaluation.reward_judges.persistence import RewardStore
from steerboard.evaluation.reward_judges.rewards import GroupToJudge, questions, rewards
from steerboard.platform.database import make_lease_engine, make_sessions, transaction
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.registry.endpoints import service as endpoints
from steerboard.registry.endpoints.chat import Connection, Provider
from steerboard.registry.endpoints.pins import endpoint_of
from steerboard.registry.endpoints.providers import connect
from steerboard.registry.endpoints.rate_limit import Pace
from steerboard.runs.state.claims import Claim
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.online.judge_reward import JudgeReward, PinnedJudge

log = logging.getLogger(__name__)


class JudgesStopped(SteerboardError):
    """The judges of a run give no more rewards."""

    code = "judge_failed"
    status = 502
    title = "The judge failed"


@dataclass(frozen=True)
class Judged:
    """`rewards` by answer, NaN for one without a usable verdict. `requests`, `cached` and `cost` (None without prices)
    are those of the judge in the run so far, all attempts."""

    rewards: list[float]
    requests: int
    cached: int
    cost: float | None


@dataclass(frozen=True)
class _Asked:
    """One judge, and what is shared by all that it is asked."""

    judge: PinnedJudge
    settings: JudgeSettings
    provider: Provider
    pace: Pace
    store: RewardStore
    budget: JudgeBudget


class RewardJudges:
    """The judges at their places among the rules of a run. One call at a time; `close` ends one that is under way."""

    def __init__(
        self,
        settings: Settings,
        claim: Claim,
        project_id: uuid.UUID,
        rules: Mapping[int, JudgeReward],
        budget: float | None,
    ) -> None:
        """Raises `BadInput` (`unknown_endpoint`) and `EndpointChanged`."""
        most = max(_settings(rule).concurrency for rule in rules.values())
        lease = settings.lease_seconds
        self._engine: Engine = make_lease_engine(settings.database_url, lease, pool_size=most + 1, patience=4 * lease)
        self._stopping, self._closed = threading.Event(), False
        self._locks = RequestLocks(self._engine, project_id)
        sessions = make_sessions(self._engine)
        try:
            self._asked = {
                place: self._opened(sessions, settings, claim, project_id, place, rule, budget)
                for place, rule in rules.items()
            }
        except BaseException:
            self.close()
            raise

    def _opened(
        self,
        sessions: sessionmaker[Session],
        settings: Settings,
        claim: Claim,
        project_id: uuid.UUID,
        place: int,
        rule: JudgeReward,
        budget: float | None,
    ) -> _Asked:
        judge, how = _pinned(rule), _settings(rule)
        with transaction(sessions) as session:
            endpoint = endpoint_of(session, session.get_one(Project, project_id), judge.endpoint)
            secret = endpoints.key_of(Secrets(settings), endpoint)
        prices = Prices.of(how)
        store = RewardStore(sessions, claim, project_id, place, prices, self._stopping)
        return _Asked(
            judge,
            how,
            connect(Connection(settings, judge.endpoint.base_url, secret, how.timeout_seconds, how.timeout_seconds)),
            Pace(how.requests_per_minute, self._stopping),
            store,
            JudgeBudget(prices, budget, store, self._stopping),
        )

    def judge(self, place: int, groups: Sequence[GroupToJudge]) -> Judged:
        """Raises `JudgesStopped` (`judge_failed`, `budget_reached`), `LeaseLost`."""
        asked = self._asked[place]
        runner = Runner(
            asked.store,
            asked.provider,
            asked.pace,
            self._locks,
            asked.budget,
            attempts=asked.settings.attempts,
            patience=asked.settings.timeout_seconds + 60,
            stopping=self._stopping,
            say=log.warning,
        )
        try:
            runner.run(questions(asked.judge, asked.settings, groups), asked.settings.concurrency, lambda: None)
        except EndpointDown as error:
            failure = JudgesStopped(
                f"The judge's endpoint stopped answering: {error.failure.reason}: {error.failure.detail}",
                hint="Answers that were paid for are kept. Resume the run when the endpoint answers again.",
            )
            failure.retryable = error.failure.retryable
            raise failure from error
        except BudgetReached as error:
            raise JudgesStopped(
                f"The run stopped before its judges could overspend: {error}.",
                code="budget_reached",
                hint="Resume it from its checkpoint with a larger `judge_budget`.",
            ) from error
        finally:
            verdicts = asked.store.taken()
            if not self._closed:
                self._stopping.clear()  # which a failure sets, for the threads that are still asking
        asked.store.note_cached(runner.counts.cached)
        counts = asked.store.counts()
        cost = None if Prices.of(asked.settings) is None else counts.cost + counts.uncertain_cost
        return Judged(rewards(asked.judge, groups, verdicts), counts.requests, counts.cached, cost)

    def close(self) -> None:
        self._closed = True
        self._stopping.set()
        self._locks.close()
        self._engine.dispose()


def _pinned(rule: JudgeReward) -> PinnedJudge:
    assert rule.pinned is not None, "a run pins its judges when it is made"
    return rule.pinned


def _settings(rule: JudgeReward) -> JudgeSettings:
    return JudgeSettings.model_validate(_pinned(rule).settings)
