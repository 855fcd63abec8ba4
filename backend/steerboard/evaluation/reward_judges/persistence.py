"""What asking the judges of a run writes: answers as they are paid for, and what they cost."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Sequence

from sqlalchemy import Update, func, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker

from steerboard.evaluation.judges.answer_store import AnswerStore
from steerboard.evaluation.judges.requests import JudgeVerdict, Question
from steerboard.evaluation.judges.spending.budget import Prices
from steerboard.evaluation.reward_judges.tables import RewardJudge
from steerboard.platform.database import transaction
from steerboard.registry.endpoints.chat import Completion
from steerboard.runs.state import claims
from steerboard.runs.state.claims import Claim

log = logging.getLogger(__name__)


class RewardStore(AnswerStore):
    """The database of one judge of a run, and the `Books` of its budget. Verdicts are not kept: the rewards are what
    the run keeps. `taken` hands out those since the last time."""

    def __init__(
        self,
        sessions: sessionmaker[Session],
        claim: Claim,
        project_id: uuid.UUID,
        place: int,
        prices: Prices | None,
        stopping: threading.Event,
    ) -> None:
        super().__init__(sessions, project_id, stopping)
        self._claim = claim
        self._place = place
        self._prices = prices
        self._verdicts: list[JudgeVerdict] = []
        self._lock = threading.Lock()
        own = {"run_id": claim.run_id, "place": place}
        self._do(lambda session: session.execute(postgresql.insert(RewardJudge).values(own).on_conflict_do_nothing()))

    def taken(self) -> list[JudgeVerdict]:
        with self._lock:
            verdicts, self._verdicts = self._verdicts, []
        return verdicts

    def keep_answer(
        self, key: str, answer: Completion, seconds: float, *, attempts: int = 1, known: float = 0.0
    ) -> None:
        prompt, completion = answer.prompt_tokens, answer.completion_tokens

        def keep(session: Session) -> None:
            # Another run may keep it first: then its tokens were paid for twice, and both count them.
            is_new = self._insert(session, key, answer, seconds, attempts, None)
            if not is_new:
                return
            costs = self._prices.cost(prompt or 0, completion or 0) if self._prices and known else 0.0
            more = {
                "requests": RewardJudge.requests + 1,
                "prompt_tokens": RewardJudge.prompt_tokens + (prompt or 0),
                "completion_tokens": RewardJudge.completion_tokens + (completion or 0),
                "cost": RewardJudge.cost + costs,
                "uncertain_cost": func.greatest(RewardJudge.uncertain_cost - known, 0.0),
            }
            session.execute(self._own().values(more))

        self._do(keep)

    def keep_verdicts(self, question: Question, rows: Sequence[JudgeVerdict], key: str | None, raw: str | None) -> None:
        with self._lock:
            self._verdicts.extend(rows)

    def note_failure(self, code: str) -> None:
        failures = RewardJudge.failures
        one_more = func.jsonb_build_object(code, func.coalesce(failures[code].as_integer(), 0) + 1)
        self._do(lambda session: session.execute(self._own().values(failures=failures.op("||")(one_more))))

    def note_cached(self, count: int) -> None:
        """Counts answers that the project had already."""
        if count:
            self._do(lambda session: session.execute(self._own().values(cached=RewardJudge.cached + count)))

    def reserve(self, cost: float, limit: float | None) -> float | None:
        """Does what `JudgeStore.reserve` does; the limit is that of all judges of the run. Raises `LeaseLost`."""

        def count(session: Session) -> float | None:
            claims.fenced(session, self._claim)  # which locks the run, and so what its judges have spent
            if limit is not None:
                taken = spent(session, self._claim.run_id)
                if taken + cost > limit:
                    return taken
            session.execute(self._own().values(uncertain_cost=RewardJudge.uncertain_cost + cost))
            return None

        return self._do(count)

    def take_back(self, cost: float) -> None:
        """Does what `JudgeStore.take_back` does."""
        less = func.greatest(RewardJudge.uncertain_cost - cost, 0.0)
        try:
            with transaction(self._sessions) as session:
                session.execute(self._own().values(uncertain_cost=less))
        except OperationalError:
            log.warning("the database was away; a refused request stays counted at %g", cost)

    def counts(self) -> RewardJudge:
        """What the judge has cost so far."""
        return self._do(lambda session: session.get_one(RewardJudge, (self._claim.run_id, self._place)))

    def _own(self) -> Update:
        mine = RewardJudge.run_id == self._claim.run_id, RewardJudge.place == self._place
        return update(RewardJudge).where(*mine).execution_options(synchronize_session=False)


def spent(session: Session, run_id: uuid.UUID) -> float:
    """The costs of all judges of a run, with the upper bound of what is uncertain or under way."""
    total = func.coalesce(func.sum(RewardJudge.cost + RewardJudge.uncertain_cost), 0.0)
    return float(session.scalar(select(total).where(RewardJudge.run_id == run_id)) or 0.0)
