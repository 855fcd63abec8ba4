"""What a judge's process writes, each in a transaction of its own: an answer as soon as it arrives, then its verdicts.

An answer is kept whichever attempt has the run by then: it is paid for. Verdicts are fenced like every write of a run.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Update, and_, delete, func, insert, or_, select, text, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.orm import Session, sessionmaker

from steerboard.evaluation.endpoint_client.answers import Answer
from steerboard.evaluation.events import changed
from steerboard.evaluation.judge_tables import Judge, JudgeAnswer, RepeatedVerdict, Verdict
from steerboard.evaluation.judges.requests import Outcome, Place, Question
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.database import transaction
from steerboard.runs.state import claims
from steerboard.runs.state.claims import Claim

_RETRY_SECONDS = 1.0
Kept = TypeVar("Kept")


class Keeper:
    """The database of one judge's run. While it is away everything waits for it; whether the lease is still ours by
    then, the fence knows. `stopping` ends the waiting."""

    def __init__(
        self,
        sessions: sessionmaker[Session],
        claim: Claim,
        *,
        project_id: uuid.UUID,
        judge_id: uuid.UUID,
        stopping: threading.Event,
    ) -> None:
        self._sessions = sessions
        self._claim = claim
        self._project_id = project_id
        self._judge_id = judge_id
        self._stopping = stopping

    def answer(self, key: str) -> Answer | None:
        """The answer that the project got to this request before."""

        def look(session: Session) -> Answer | None:
            found = session.get(JudgeAnswer, (self._project_id, key))
            if found is None:
                return None
            counts = found.prompt_tokens, found.completion_tokens
            return Answer(found.content, found.finish_reason, found.logprobs, *counts)

        return self._do(look)

    def keep_answer(self, key: str, answer: Answer, seconds: float, *, uncertain: float = 0.0) -> None:
        """Before anything is read out of it. `uncertain`: what it may have cost, where its tokens are not known."""

        def keep(session: Session) -> None:
            # The judge may have been deleted meanwhile; what was paid for stays.
            judge = session.scalar(select(Judge.id).where(Judge.id == self._judge_id).with_for_update(key_share=True))
            session.execute(
                postgresql.insert(JudgeAnswer)
                .values(
                    project_id=self._project_id,
                    key=key,
                    content=answer.content,
                    finish_reason=answer.finish_reason,
                    logprobs=answer.logprobs,
                    prompt_tokens=answer.prompt_tokens,
                    completion_tokens=answer.completion_tokens,
                    seconds=seconds,
                    judge_id=judge,
                )
                .on_conflict_do_nothing()
            )
            if uncertain:
                session.execute(self._costlier(uncertain))

        self._do(keep)

    def keep_verdicts(self, question: Question, rows: Sequence[Outcome], key: str | None, raw: str | None) -> None:
        """In place of what these items had before. Raises `LeaseLost`."""
        of = RepeatedVerdict if question.repeat else Verdict
        mine = of.judge_id == self._judge_id, of.position == question.position, of.turn == question.turn

        def keep(session: Session) -> None:
            claims.fenced(session, self._claim)
            session.execute(delete(of).where(*mine, or_(*(_same_place(of, row.place) for row in rows))))
            session.execute(insert(of), [self._row(question, row, key, raw) for row in rows])

        self._do(keep)

    def note_failure(self, code: str) -> None:
        """Count a request that failed."""
        counts = func.coalesce(Judge.failures, text("'{}'::jsonb"))
        one_more = func.jsonb_build_object(code, func.coalesce(counts[code].as_integer(), 0) + 1)
        statement = update(Judge).where(Judge.id == self._judge_id).values(failures=counts.op("||")(one_more))
        self._do(lambda session: session.execute(statement.execution_options(synchronize_session=False)))

    def note_uncertain_cost(self, cost: float) -> None:
        """Count what a request without an answer may have cost."""
        if cost:
            self._do(lambda session: session.execute(self._costlier(cost)))

    def _costlier(self, cost: float) -> Update:
        statement = update(Judge).where(Judge.id == self._judge_id)
        more = statement.values(uncertain_cost=Judge.uncertain_cost + cost)
        return more.execution_options(synchronize_session=False)

    def announce(self, evaluation_id: uuid.UUID) -> None:
        """Readers of the evaluation look again."""

        def tell(session: Session) -> None:
            evaluation = session.get(Evaluation, evaluation_id)
            if evaluation is not None:
                changed(session, evaluation, "judge")

        self._do(tell)

    def _row(self, question: Question, outcome: Outcome, key: str | None, raw: str | None) -> dict[str, Any]:
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

    def _do(self, work: Callable[[Session], Kept]) -> Kept:
        """Doing it again after an outage is safe: every write here sets a state instead of adding to it; a count
        of failures and an uncertain cost may be one too high then."""
        while True:
            try:
                with transaction(self._sessions) as session:
                    return work(session)
            except OperationalError:
                if self._stopping.wait(_RETRY_SECONDS):
                    raise
            except IntegrityError as error:
                if not _deleted(error):
                    raise
                raise Gone("the judge, or an entrant, was deleted") from error


class Gone(Exception):
    """There is nothing left to write to."""


def _deleted(error: IntegrityError) -> bool:
    return getattr(error.orig, "sqlstate", None) == "23503"


def _same_place(of: type[Verdict] | type[RepeatedVerdict], place: Place) -> ColumnElement[bool]:
    if place.b is None:
        # Where all were shown at once, the order may have been another one before.
        return and_(of.a == place.a, of.b.is_(None))
    return and_(of.a == place.a, of.b == place.b, of.a_first.is_not_distinct_from(place.a_first))
