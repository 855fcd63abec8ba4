"""The process of one judge's run: `python -m steerboard.evaluation.judges.process RUN ATTEMPT`.

Like a stage it runs under a guardian and reports progress in lines of JSON on its standard output; unlike one it has
the database, since each answer is kept the moment it is paid for. It gets nothing but ids: the endpoint's key is
opened here, and never leaves this process but in the requests themselves.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.orm import Session, sessionmaker

from steerboard.evaluation import endpoint_process
from steerboard.evaluation.event_writer import StageEventWriter
from steerboard.evaluation.judge_tables import Judge
from steerboard.evaluation.judges import queries as reading
from steerboard.evaluation.judges import styles
from steerboard.evaluation.judges.answer_store import Gone
from steerboard.evaluation.judges.judge_inputs import JudgeInputs
from steerboard.evaluation.judges.persistence import JudgeStore
from steerboard.evaluation.judges.request_locks import RequestLocks
from steerboard.evaluation.judges.requests import Question, key_of
from steerboard.evaluation.judges.runner import EndpointDown, Runner
from steerboard.evaluation.judges.schemas import JudgeSettings
from steerboard.evaluation.judges.spending.budget import BudgetReached, JudgeBudget, Prices
from steerboard.evaluation.judges.spending.costs import budget_holder
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.database import make_lease_engine, make_sessions, transaction
from steerboard.platform.leases import LeaseLost
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings, get_settings
from steerboard.registry.endpoints import service as endpoints
from steerboard.registry.endpoints.chat import Connection
from steerboard.registry.endpoints.providers import connect
from steerboard.registry.endpoints.rate_limit import Pace
from steerboard.registry.tables import Endpoint
from steerboard.runs.state.claims import Claim
from steerboard.runs.tables import Run
from steerboard_contracts.errors import BadInput
from steerboard_contracts.run_kinds.judge import JudgeConfig
from steerboard_contracts.stage.events import Failed, Log, Progress, Succeeded

_PROGRESS_SECONDS = 0.5
_ANNOUNCE_SECONDS = 2.0


@dataclass(frozen=True)
class Job:
    """The run's state in the database. `total`: requests in all; `done`: items that have their verdicts;
    `budget_holder`: the judge whose `budget` is spent, itself or the one that it calibrates."""

    claim: Claim
    project_id: uuid.UUID
    evaluation_id: uuid.UUID
    judge: Judge
    settings: JudgeSettings
    endpoint: Endpoint
    inputs: JudgeInputs
    done: set[reading.Judged]
    budget_holder: uuid.UUID
    budget: float | None
    total: int = 0
    before: int = 0

    def questions(self) -> Iterator[tuple[str, Question]]:
        """Everything that the judge is asked, and under which key; generated each time, to save memory."""
        for question in itertools.chain(self._questions(), styles.repeats(self.settings, self._questions())):
            yield key_of(self.endpoint.base_url, question.request, repeat=question.repeat), question

    def _questions(self) -> Iterator[Question]:
        # The model that the judge was made for: later changes of the endpoint are for other judges.
        return styles.questions(self.judge.style, self.settings, self.judge.model, self.inputs)

    def left(self) -> Iterator[tuple[str, Question]]:
        return ((key, item) for key, item in self.questions() if not reading.is_judged(item, key, self.done))


def load(session: Session, run_id: uuid.UUID, attempt: int) -> Job:
    """Raises `LeaseLost`, and `BadInput` for what has been deleted since the run was started."""
    run = session.get(Run, run_id)
    if run is None or run.attempt != attempt or run.state != "running" or run.lease_owner is None:
        raise LeaseLost(f"attempt {attempt} of run {run_id} no longer holds its lease")
    config = JudgeConfig.model_validate(run.config)
    judge, evaluation = session.get(Judge, config.judge), session.get(Evaluation, config.evaluation)
    if judge is None or evaluation is None or evaluation.project_id != run.project_id:
        raise BadInput("the judge, or its evaluation, was deleted", code="judge_deleted")
    endpoint = session.get(Endpoint, judge.endpoint_id) if judge.endpoint_id else None
    if endpoint is None:
        raise BadInput("the judge's endpoint was deleted", code="unknown_endpoint", hint="Add another judge.")
    settings, holder = JudgeSettings.model_validate(judge.settings), budget_holder(session, judge)
    job = Job(
        claim=Claim(run.id, attempt, run.lease_owner),
        project_id=run.project_id,
        evaluation_id=evaluation.id,
        judge=judge,
        settings=settings,
        endpoint=endpoint,
        inputs=reading.judge_inputs_of(session, evaluation, settings),
        done=reading.judged(session, judge.id),
        budget_holder=holder.id,
        budget=JudgeSettings.model_validate(holder.settings).budget,
    )
    total = sum(1 for _ in job.questions())
    return replace(job, total=total, before=total - sum(1 for _ in job.left()))


def work(
    engine: Engine, sessions: sessionmaker[Session], settings: Settings, job: Job, event_writer: StageEventWriter
) -> Succeeded:
    """Ask what is left. Raises `BudgetReached`, `EndpointDown`, `LeaseLost`, `Gone`."""
    stopping = threading.Event()
    judge_store = JudgeStore(
        sessions,
        job.claim,
        project_id=job.project_id,
        judge_id=job.judge.id,
        budget_holder=job.budget_holder,
        stopping=stopping,
    )
    secret, seconds = endpoints.key_of(Secrets(settings), job.endpoint), job.settings.timeout_seconds
    provider = connect(Connection(settings, job.endpoint.base_url, secret, seconds, seconds))
    left_out = styles.left_out(job.inputs)
    if left_out:
        event_writer.warn(f"{left_out} prompts lack an answer of an entrant, and what it was needed for is left out")
    if job.before:
        event_writer.say(Log(message=f"{job.before} of {job.total} requests are judged already"))
    request_locks = RequestLocks(engine, job.project_id)
    runner = Runner(
        judge_store,
        provider,
        Pace(job.settings.requests_per_minute, stopping),
        request_locks,
        JudgeBudget(Prices.of(job.settings), job.budget, judge_store, stopping),
        attempts=job.settings.attempts,
        patience=seconds + 60,
        stopping=stopping,
        say=event_writer.warn,
    )
    watch = _Watch(event_writer, judge_store, runner, job)
    try:
        runner.run(job.left(), job.settings.concurrency, watch.look)
    finally:
        request_locks.close()
    watch.look(last=True)
    counts = runner.counts
    if counts.judged and not counts.paid and not counts.cached:
        # Every request failed: no verdicts, and not because the judge had no opinion.
        code = counts.failures.most_common(1)[0][0] if counts.failures else "no_answer"
        raise BadInput(
            f"the endpoint answered none of {counts.judged} requests ({code})",
            code="judge_failed",
            hint="The run's log has its errors. Resume the run when the endpoint answers again.",
        )
    return Succeeded(outputs=[], summary=_summary(job, runner))


class _Watch:
    """Reports progress, no more often than anyone looks."""

    def __init__(self, event_writer: StageEventWriter, judge_store: JudgeStore, runner: Runner, job: Job) -> None:
        self._event_writer, self._judge_store, self._runner, self._job = event_writer, judge_store, runner, job
        self._said = self._announced = time.monotonic()
        self._seen = -1

    def look(self, *, last: bool = False) -> None:
        counts, now = self._runner.counts, time.monotonic()
        if last or now - self._said >= _PROGRESS_SECONDS:
            self._said = now
            failed = sum(counts.failures.values())
            phase = f"{counts.paid} answered, {counts.cached} known, {failed} failed requests"
            done = self._job.before + counts.judged
            self._event_writer.say(Progress(done=done, total=self._job.total, unit="requests", phase=phase))
        if counts.judged != self._seen and (last or now - self._announced >= _ANNOUNCE_SECONDS):
            self._seen, self._announced = counts.judged, now
            self._judge_store.announce(self._job.evaluation_id)


def _summary(job: Job, runner: Runner) -> dict[str, Any]:
    """The figures of this attempt; the judge itself has the sums of all of them."""
    counts = runner.counts
    return {
        "requests": job.total,
        "answered": counts.paid,
        "cached": counts.cached,
        "verdicts": dict(counts.statuses),
        "without_verdict": counts.statuses["unparsed"] + counts.statuses["refused"],
        "failed_requests": dict(counts.failures),
        "left_out_prompts": styles.left_out(job.inputs),
    }


def failure_of(error: BaseException) -> Failed:
    """The last message of a run that failed. Never the text of an unexpected error, which may hold anything."""
    if isinstance(error, EndpointDown):
        return Failed(
            code="judge_failed",
            detail=f"The endpoint stopped answering: {error.failure.reason}: {error.failure.detail}",
            hint="Finished verdicts are kept. Resume the run when the endpoint answers again.",
            retryable=error.failure.retryable,
        )
    if isinstance(error, BudgetReached):
        return Failed(
            code="budget_reached",
            detail=f"The judge stopped before it could overspend: {error}.",
            hint="Finished verdicts are kept. Raise the judge's budget, then ask again for the rest.",
        )
    if isinstance(error, Gone):
        return Failed(code="judge_deleted", detail=str(error))
    return endpoint_process.failure_of(error)


def _engine(settings: Settings) -> Engine:
    lease = settings.lease_seconds
    return make_lease_engine(settings.database_url, lease, pool_size=6, patience=4 * lease)


def main(run_id: str, attempt: int, event_writer: StageEventWriter) -> int:
    settings = get_settings()
    engine = _engine(settings)
    sessions = make_sessions(engine)
    with transaction(sessions) as session:
        job = load(session, uuid.UUID(run_id), attempt)
    event_writer.say(work(engine, sessions, settings, job, event_writer))
    return 0


if __name__ == "__main__":
    sys.exit(endpoint_process.run_process("steerboard.evaluation.judges.process", main, failure_of))
