"""What a judge's process writes, each in a transaction of its own: an answer as soon as it arrives, then its verdicts.

An answer is kept whichever attempt has the run by then: it is paid for. Verdicts are fenced like every write of a run.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Update, and_, delete, func, insert, or_, select, text, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker

from steerboard.evaluation.events import changed
from steerboard.evaluation.judge_tables import Judge, RepeatedVerdict, Verdict
from steerboard.evaluation.judges.answer_store import AnswerStore
from steerboard.evaluation.judges.requests import JudgeVerdict, Place, Question
from steerboard.evaluation.judges.spending.costs import spent_of_budget
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.database import transaction
from steerboard.registry.endpoints.chat import Completion
from steerboard.runs.state import claims
from steerboard.runs.state.claims import Claim

log = logging.getLogger(__name__)


class JudgeStore(AnswerStore):
    """The database of one judge's run. Whether the lease is still ours after an outage, the fence knows."""

    def __init__(
        self,
        sessions: sessionmaker[Session],
        claim: Claim,
        *,
        project_id: uuid.UUID,
        judge_id: uuid.UUID,
        budget_holder: uuid.UUID,
        stopping: threading.Event,
    ) -> None:
        super().__init__(sessions, project_id, stopping)
        self._claim = claim
        self._judge_id = judge_id
        self._budget_holder = budget_holder

    def keep_answer(
        self, key: str, answer: Completion, seconds: float, *, attempts: int = 1, known: float = 0.0
    ) -> None:
        """Called before anything is read out of it. `known`: what was reserved for it and is replaced by its tokens'
        price."""

        def keep(session: Session) -> None:
            # The judge may have been deleted meanwhile; what was paid for stays.
            judge = session.scalar(select(Judge.id).where(Judge.id == self._judge_id).with_for_update(key_share=True))
            is_new = self._insert(session, key, answer, seconds, attempts, judge)
            # The tokens of an answer that is kept already are counted elsewhere, or were by a former try of this.
            if is_new and known:
                session.execute(self._costlier(-known))

        self._do(keep)

    def keep_verdicts(self, question: Question, rows: Sequence[JudgeVerdict], key: str | None, raw: str | None) -> None:
        """Keep verdicts in place of what these items had before. Raises `LeaseLost`."""
        of = RepeatedVerdict if question.repeat else Verdict
        conditions = of.judge_id == self._judge_id, of.position == question.position, of.turn == question.turn

        def keep(session: Session) -> None:
            claims.fenced(session, self._claim)
            session.execute(delete(of).where(*conditions, or_(*(_same_place(of, row.place) for row in rows))))
            session.execute(insert(of), [self._row(question, row, key, raw) for row in rows])

        self._do(keep)

    def note_failure(self, code: str) -> None:
        """Count a request that failed."""
        counts = func.coalesce(Judge.failures, text("'{}'::jsonb"))
        one_more = func.jsonb_build_object(code, func.coalesce(counts[code].as_integer(), 0) + 1)
        statement = update(Judge).where(Judge.id == self._judge_id).values(failures=counts.op("||")(one_more))
        self._do(lambda session: session.execute(statement.execution_options(synchronize_session=False)))

    def reserve(self, cost: float, limit: float | None) -> float | None:
        """Count what a request may cost before it is sent; it stays counted until an answer shows its cost. Where it
        does not fit into the limit: what is spent and reserved by now, and nothing is written. Raises `LeaseLost`."""

        def count(session: Session) -> float | None:
            claims.fenced(session, self._claim)
            if limit is not None:
                taken = spent_of_budget(session, self._project_id, self._budget_holder)
                if taken + cost > limit:
                    return taken
            session.execute(self._costlier(cost))
            return None

        return self._do(count)

    def take_back(self, cost: float) -> None:
        """Takes back the cost of a request that was refused. Where an outage hides whether this was written it isn't
        done again, for twice would be too much: then the cost stays counted."""
        try:
            with transaction(self._sessions) as session:
                session.execute(self._costlier(-cost))
        except OperationalError:
            log.warning("the database was away; a refused request stays counted at %g", cost)

    def _costlier(self, cost: float) -> Update:
        statement = update(Judge).where(Judge.id == self._judge_id)
        more = statement.values(uncertain_cost=func.greatest(Judge.uncertain_cost + cost, 0.0))
        return more.execution_options(synchronize_session=False)

    def announce(self, evaluation_id: uuid.UUID) -> None:
        """Readers of the evaluation look again."""

        def tell(session: Session) -> None:
            evaluation = session.get(Evaluation, evaluation_id)
            if evaluation is not None:
                changed(session, evaluation, "judge")

        self._do(tell)

    def _row(self, question: Question, outcome: JudgeVerdict, key: str | None, raw: str | None) -> dict[str, Any]:
        row = {
            "judge_id": self._judge_id,
            "position": question.position,
            "turn": question.turn,
            "a": outcome.place.a,
            "b": outcome.place.b,
            "a_first": outcome.place.a_first,
            "value": outcome.value,
            "status": outcome.status,
            "answer_key": key,
        }
        if question.repeat:
            return row
        return {**row, "weight": outcome.weight, "raw": raw, "detail": outcome.detail, "superseded": False}


def _same_place(of: type[Verdict] | type[RepeatedVerdict], place: Place) -> ColumnElement[bool]:
    if place.b is None:
        # Where all were shown at once, the order may have been another one before.
        return and_(of.a == place.a, of.b.is_(None))
    return and_(of.a == place.a, of.b == place.b, of.a_first.is_not_distinct_from(place.a_first))
