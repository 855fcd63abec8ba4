"""The process of an endpoint's answers: `python -m steerboard.evaluation.entrants.process RUN ATTEMPT`.

It takes the place of the answer stage, and of the generate stage, and reads and writes the same files in the attempt's
folder, so its results are registered in the same way. For an academic run it starts the stage, and asks for it. From
the database it reads only the endpoint and its sealed key.
"""

from __future__ import annotations

import logging
import os
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from steerboard.evaluation.entrants import endpoint_dialogues, endpoint_generation, endpoint_harness
from steerboard.evaluation.entrants.endpoint_answers import Target
from steerboard.evaluation.voice import Voice
from steerboard.platform.database import make_engine, make_sessions, transaction
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import get_settings
from steerboard.runs.tables import Run
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.run_kinds import described
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.stage.events import Failed, Succeeded
from steerboard_contracts.stage.spec import STAGE_FILE, StageSpec

log = logging.getLogger("steerboard.answering")


class Asking(NamedTuple):
    """How the runs of a kind ask their endpoint. They get their kind's config."""

    load_target: Callable[[Session, Secrets, Run, Any], Target]
    work: Callable[[Path, StageSpec, Any, Target, Voice], Succeeded] | None
    """None where the harness does the work."""


def asking_of(kind: RunKindSpec) -> Asking:
    if kind.by_harness:
        return Asking(endpoint_harness.load_target, None)
    if kind.of_evaluation:
        return Asking(endpoint_dialogues.load_target, endpoint_dialogues.work)
    return Asking(endpoint_generation.load_target, endpoint_generation.work)


def main(run_id: str, attempt: str) -> int:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else is printed goes to the log
    voice = Voice(out)
    logging.basicConfig(level="INFO", format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    for noisy in ("httpx", "httpcore"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    settings, folder = get_settings(), Path.cwd()
    try:
        spec = StageSpec.model_validate_json((folder / STAGE_FILE).read_bytes())
        assert (spec.run_id, spec.attempt) == (str(uuid.UUID(run_id)), int(attempt))
        asking = asking_of(described(spec.config))
        engine = make_engine(settings.database_url, pool_size=1)
        with transaction(make_sessions(engine)) as session:
            run = session.get_one(Run, uuid.UUID(run_id))
            target = asking.load_target(session, Secrets(settings), run, spec.config)
        engine.dispose()
        if asking.work is None:
            return endpoint_harness.run_harness(folder, settings, target, voice)
        voice.say(asking.work(folder, spec, spec.config, target, voice))
    except BrokenPipeError:
        return 1  # no one listens any more: the guardian is about to end this process group
    except SteerboardError as error:
        voice.say(Failed(code=error.code, detail=error.detail, hint=error.hint, retryable=error.retryable))
        return 1
    except Exception as error:
        log.exception("asking the endpoint hit an unexpected error")
        detail = f"{type(error).__name__}; the run's log has the traceback."
        voice.say(Failed(code="stage_crashed", detail=detail, retryable=True))
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("usage: python -m steerboard.evaluation.entrants.process RUN ATTEMPT", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1], sys.argv[2]))
