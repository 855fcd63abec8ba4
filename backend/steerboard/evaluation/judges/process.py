"""The process of one judge's run: `python -m steerboard.evaluation.judges.process RUN ATTEMPT`.

Like a stage it runs under a guardian and reports progress in lines of JSON on its standard output; unlike one it has
the database, since each answer is kept the moment it is paid for. It gets nothing but ids: the endpoint's key is
opened here, and never leaves this process but in the requests themselves.
"""

from __future__ import annotations

import itertools
import logging
import os
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TextIO

from sqlalchemy import Engine
from sqlalchemy.orm import Session, sessionmaker

from steerboard.evaluation.judge_tables import Judge
from steerboard.evaluation.judges import queries as reading
from steerboard.evaluation.judges import styles
from steerboard.evaluation.judges.judge_inputs import JudgeInputs
from steerboard.evaluation.judges.persistence import Gone, Keeper
from steerboard.evaluation.judges.request_locks import RequestLocks
from steerboard.evaluation.judges.requests import Question, key_of
from steerboard.evaluation.judges.runner import EndpointDown, Runner
from steerboard.evaluation.judges.schemas import JudgeSettings
from steerboard.evaluation.judges.spending.budget import BudgetReached, Prices, Purse
from steerboard.evaluation.judges.spending.costs import budget_holder
from steerboard.evaluation.tables import Evaluation
from steerboard.evaluation.voice import Voice
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
from steerboard_contracts.configs.judge import JudgeConfig
from steerboard_contracts.errors import BadInput, SteerboardError
from steerboard_contracts.stage.events import Failed, Log, Progress, Succeeded

log = logging.getLogger("steerboard.judging")

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

    def asked(self) -> Iterator[tuple[str, Question]]:
        """Everything that the judge is asked, and under which key; generated each time, to save memory."""
        for question in itertools.chain(self._questions(), styles.repeats(self.settings, self._questions())):
            yield key_of(self.endpoint.base_url, question.request, repeat=question.repeat), question

    def _questions(self) -> Iterator[Question]:
        # The model that the judge was made for: later changes of the endpoint are for other judges.
        return styles.questions(self.judge.style, self.settings, self.judge.model, self.inputs)

    def left(self) -> Iterator[tuple[str, Question]]:
        return ((key, question) for key, question in self.asked() if not reading.is_judged(question, key, self.done))


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
    total = sum(1 for _ in job.asked())
    return replace(job, total=total, before=total - sum(1 for _ in job.left()))


def work(engine: Engine, sessions: sessionmaker[Session], settings: Settings, job: Job, voice: Voice) -> Succeeded:
    """Ask what is left. Raises `BudgetReached`, `EndpointDown`, `LeaseLost`, `Gone`."""
    stopping = threading.Event()
    keeper = Keeper(
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
        voice.warn(f"{left_out} prompts lack an answer of an entrant, and what it was needed for is left out")
    if job.before:
        voice.say(Log(message=f"{job.before} of {job.total} requests are judged already"))
    request_locks = RequestLocks(engine, job.project_id)
    runner = Runner(
        keeper,
        provider,
        Pace(job.settings.requests_per_minute, stopping),
        request_locks,
        Purse(Prices.of(job.settings), job.budget, keeper, stopping),
        attempts=job.settings.attempts,
        patience=seconds + 60,
        stopping=stopping,
        say=voice.warn,
    )
    watch = _Watch(voice, keeper, runner, job)
    try:
        runner.run(job.left(), job.settings.concurrency, watch.look)
    finally:
        request_locks.close()
    watch.look(last=True)
    tally = runner.tally
    if tally.judged and not tally.paid and not tally.cached:
        # Every request failed: no verdicts, and not because the judge had no opinion.
        code = tally.failures.most_common(1)[0][0] if tally.failures else "no_answer"
        raise BadInput(
            f"the endpoint answered none of {tally.judged} requests ({code})",
            code="judge_failed",
            hint="The run's log has its errors. Resume the run when the endpoint answers again.",
        )
    return Succeeded(outputs=[], summary=_summary(job, runner))


class _Watch:
    """Reports progress, no more often than anyone looks."""

    def __init__(self, voice: Voice, keeper: Keeper, runner: Runner, job: Job) -> None:
        self._voice, self._keeper, self._runner, self._job = voice, keeper, runner, job
        self._said = self._announced = time.monotonic()
        self._seen = -1

    def look(self, *, last: bool = False) -> None:
        tally, now = self._runner.tally, time.monotonic()
        if last or now - self._said >= _PROGRESS_SECONDS:
            self._said = now
            failed = sum(tally.failures.values())
            phase = f"{tally.paid} answered, {tally.cached} known, {failed} failed requests"
            done = self._job.before + tally.judged
            self._voice.say(Progress(done=done, total=self._job.total, unit="requests", phase=phase))
        if tally.judged != self._seen and (last or now - self._announced >= _ANNOUNCE_SECONDS):
            self._seen, self._announced = tally.judged, now
            self._keeper.announce(self._job.evaluation_id)


def _summary(job: Job, runner: Runner) -> dict[str, Any]:
    """The figures of this attempt; the judge itself has the sums of all of them."""
    tally = runner.tally
    return {
        "requests": job.total,
        "answered": tally.paid,
        "cached": tally.cached,
        "verdicts": dict(tally.statuses),
        "without_verdict": tally.statuses["unparsed"] + tally.statuses["refused"],
        "failed_requests": dict(tally.failures),
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
    if isinstance(error, SteerboardError):
        return Failed(
            code=error.code, detail=error.detail, hint=error.hint, errors=error.errors, retryable=error.retryable
        )
    return Failed(
        code="stage_crashed", detail=f"{type(error).__name__}; the run's log has the traceback.", retryable=True
    )


def _engine(settings: Settings) -> Engine:
    lease = settings.lease_seconds
    return make_lease_engine(settings.database_url, lease, pool_size=6, patience=4 * lease)


def _take_stdout() -> TextIO:
    """Standard output for events alone; whatever else is printed goes to the log."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


def main(run_id: str, attempt: str) -> int:
    voice = Voice(_take_stdout())
    settings = get_settings()
    # Not DEBUG: libraries write requests out there.
    logging.basicConfig(level="INFO", format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    for noisy in ("httpx", "httpcore"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    engine = _engine(settings)
    sessions = make_sessions(engine)
    try:
        with transaction(sessions) as session:
            job = load(session, uuid.UUID(run_id), int(attempt))
        voice.say(work(engine, sessions, settings, job, voice))
    except LeaseLost as lost:
        log.info("%s", lost)
    except BrokenPipeError:
        return 1  # no one listens any more: the guardian is about to end this process group
    except (BudgetReached, EndpointDown, Gone, SteerboardError) as error:
        voice.say(failure_of(error))
        return 1
    except Exception as error:
        log.exception("the judge's run hit an unexpected error")
        voice.say(failure_of(error))
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("usage: python -m steerboard.evaluation.judges.process RUN ATTEMPT", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1], sys.argv[2]))
