"""The academic stage's work with an endpoint for its model: the harness runs in a process of its own, as always, and
this one, which has the endpoint's key, asks what it wants to know."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from pydantic import ValidationError
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.evaluation.entrants.endpoint_answers import EndpointGaveUp, Respondent, Target, target_of
from steerboard.evaluation.event_writer import StageEventWriter
from steerboard.platform.processes import lm_eval
from steerboard.platform.processes.public_environment import public_environment
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.registry.endpoints.pins import endpoint_of
from steerboard.registry.endpoints.service import get_endpoint
from steerboard.registry.tables import Model
from steerboard.runs.tables import Run
from steerboard_contracts.run_kinds.academic import AcademicConfig
from steerboard_contracts.stage.events import Failed
from steerboard_contracts.stage.questions import LONGEST_LINE, MOST_AT_ONCE, Question, Reply

log = logging.getLogger("steerboard.answering")

_OF_HUB = ("HF_", "HUGGING_FACE_")
# Marks the processes of a run, so that a lost one can be found and ended.
_MARK = "STEERBOARD_STAGE"


def load_target(session: Session, secrets: Secrets, run: Run, config: AcademicConfig) -> Target:
    """Raises `BadInput` (`unknown_endpoint`) for one that was deleted, `EndpointChanged`, `SecretUnreadable`."""
    project, pin = session.get_one(Project, run.project_id), config.pinned_endpoint
    # A run of an earlier release has no pin.
    endpoint = endpoint_of(session, project, pin) if pin else get_endpoint(session, project, config.endpoint or "")
    policy = session.get(Model, endpoint.policy_model_id) if endpoint.policy_model_id else None
    return target_of(secrets, endpoint, policy, None, pin)


def run_harness(folder: Path, settings: Settings, target: Target, event_writer: StageEventWriter) -> int:
    """Start it, answer its questions and pass its events on until it ends. Returns its exit code; a harness that a
    signal ended ends this process likewise. Raises `EngineMissing`."""
    python = lm_eval.require_python(settings)
    ours, remote = socket.socketpair()
    with remote:
        harness = subprocess.Popen(
            [python, "-m", "steerboard_workers.stages", folder],
            stdin=remote.fileno(),
            stdout=subprocess.PIPE,
            env=_environment() | lm_eval.variables(settings.home),
        )
    assert harness.stdout is not None
    asking = threading.Thread(
        target=_serve, args=(ours, Respondent(target, event_writer)), name="questions", daemon=True
    )
    asking.start()
    with harness.stdout as events:
        for line in events:
            event_writer.pass_on(line.decode())
    code = harness.wait()
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


def _serve(connection: socket.socket, respondent: Respondent) -> None:
    """Answer until the other end is closed, or sends what is not a question: its own code may have done that."""
    lock = threading.Lock()
    with connection, connection.makefile("rb") as lines, connection.makefile("wb") as replies:
        with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
            while line := lines.readline(LONGEST_LINE):
                try:
                    question = Question.model_validate_json(line)
                except ValidationError:
                    break
                pool.submit(_answer, question, respondent, replies, lock)
            respondent.stopping.set()


def _answer(question: Question, respondent: Respondent, replies: IO[bytes], lock: threading.Lock) -> None:
    reply = Reply(number=question.number)
    try:
        messages = [turn.model_dump() for turn in question.messages]
        answer = respondent.answer(f"question {question.number + 1}", messages, question.decoding, question.seed)
        reply.text = answer.content
    except EndpointGaveUp as error:
        reply.failed = Failed(code=error.code, detail=error.detail, hint=error.hint, retryable=error.retryable)
    except Exception as error:
        log.exception("asking the endpoint hit an unexpected error")
        detail = f"{type(error).__name__}; the run's log has the traceback."
        reply.failed = Failed(code="stage_crashed", detail=detail, retryable=True)
    with lock:
        try:
            replies.write(reply.model_dump_json().encode() + b"\n")
            replies.flush()
        except OSError:
            respondent.stopping.set()  # no one is there any more
        # The first that fails knows why; what is under way is given up.
        if reply.failed is not None:
            respondent.stopping.set()


def _environment() -> dict[str, str]:
    """The environment without what opens the database, the secrets or the store, and with what reaches the hub for
    tasks' data."""
    needed = {name: value for name, value in os.environ.items() if name.startswith(_OF_HUB) or name == _MARK}
    return public_environment() | needed
