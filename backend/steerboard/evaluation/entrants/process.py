"""The process of an endpoint's answers: `python -m steerboard.evaluation.entrants.process RUN ATTEMPT`.

It takes the place of the answer stage, and of the generate stage, and reads and writes the same files in the attempt's
folder, so its results are registered in the same way. For an academic run it starts the stage, and asks for it. From
the database it reads only the endpoint and its sealed key.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from steerboard.evaluation.endpoint_process import run_process
from steerboard.evaluation.entrants import endpoint_dialogues, endpoint_generation, endpoint_harness
from steerboard.evaluation.entrants.endpoint_answers import Target
from steerboard.evaluation.event_writer import StageEventWriter
from steerboard.platform.database import make_engine, make_sessions, transaction
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import get_settings
from steerboard.runs.tables import Run
from steerboard_contracts.stage.events import Succeeded
from steerboard_contracts.stage.spec import STAGE_FILE, StageSpec


class Asking(NamedTuple):
    """How the runs of a kind ask their endpoint. They get their kind's config."""

    load_target: Callable[[Session, Secrets, Run, Any], Target]
    work: Callable[[Path, StageSpec, Any, Target, StageEventWriter], Succeeded] | None
    """None where the harness does the work."""


ASKING = {
    "academic": Asking(endpoint_harness.load_target, None),
    "answer": Asking(endpoint_dialogues.load_target, endpoint_dialogues.work),
    "generate": Asking(endpoint_generation.load_target, endpoint_generation.work),
}


def main(run_id: str, attempt: int, event_writer: StageEventWriter) -> int:
    settings, folder = get_settings(), Path.cwd()
    spec = StageSpec.model_validate_json((folder / STAGE_FILE).read_bytes())
    assert (spec.run_id, spec.attempt) == (str(uuid.UUID(run_id)), attempt)
    asking = ASKING[spec.kind]
    engine = make_engine(settings.database_url, pool_size=1)
    with transaction(make_sessions(engine)) as session:
        run = session.get_one(Run, uuid.UUID(run_id))
        target = asking.load_target(session, Secrets(settings), run, spec.config)
    engine.dispose()
    if asking.work is None:
        return endpoint_harness.run_harness(folder, settings, target, event_writer)
    event_writer.say(asking.work(folder, spec, spec.config, target, event_writer))
    return 0


if __name__ == "__main__":
    sys.exit(run_process("steerboard.evaluation.entrants.process", main))
