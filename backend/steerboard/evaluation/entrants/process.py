"""The process of an endpoint's answers: `python -m steerboard.evaluation.entrants.process RUN ATTEMPT`.

It takes the place of the answer stage, and of the generate stage, and reads and writes the same files in the attempt's
folder, so its results are registered in the same way. For an academic run it starts the stage, and asks for it. From
the database it reads only the endpoint and its sealed key.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import uuid
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from steerboard.evaluation.endpoint_client.voice import Voice
from steerboard.evaluation.entrants import endpoint_generation, endpoint_harness
from steerboard.evaluation.entrants.endpoint_answers import Respondent, Target, seed_of, target_of, write_lines
from steerboard.evaluation.entrants.responses import turns_before_last
from steerboard.evaluation.tables import Entrant
from steerboard.platform.database import make_engine, make_sessions, transaction
from steerboard.platform.http.errors import NotFound
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import get_settings
from steerboard.registry.tables import Endpoint, Model
from steerboard.runs.tables import Run
from steerboard_contracts.configs.academic import AcademicConfig
from steerboard_contracts.configs.answer import AnswerConfig
from steerboard_contracts.configs.generate import GenerateConfig
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.files.resumable_rows import ResumableRows
from steerboard_contracts.stage.events import Failed, Log, Progress, Succeeded
from steerboard_contracts.stage.outputs import ResponsesOutput
from steerboard_contracts.stage.spec import STAGE_FILE, StageSpec

log = logging.getLogger("steerboard.answering")

# An evaluation may ask several services that limit how many requests they take at once.
_THREADS = 4


class Dialogue:
    """Lets the endpoint answer all turns of one sample. Any number of threads use it at once."""

    def __init__(self, config: AnswerConfig, respondent: Respondent, kept: ResumableRows) -> None:
        self._config, self._respondent, self._kept = config, respondent, kept

    def answer(self, prompt: dict[str, Any], sample: int) -> None:
        """What is kept already is not asked for again. Raises `EndpointGaveUp`."""
        decoding = self._config.decoding
        temperature = self._config.temperatures.get(prompt["category"] or "", decoding.temperature)
        decoding = decoding.model_copy(update={"temperature": temperature})
        turns: list[str] = []
        for turn in range(1 + len(prompt["follow_ups"])):
            place = prompt["position"], sample, turn
            known = self._kept.rows.get(place)
            if known is None:
                if self._respondent.stopping.is_set():
                    return
                messages = turns_before_last(prompt["messages"], prompt["follow_ups"], [*turns, ""])
                seed = seed_of(self._config.seed, place)
                said = self._respondent.ask(f"prompt {place[0]}", messages, decoding, seed)
                known = {"position": place[0], "sample": sample, "turn": turn, **said}
                self._kept.add([known])
            turns.append(known["text"])


def load_target(session: Session, secrets: Secrets, config: AnswerConfig) -> Target:
    """Raises `NotFound` for an endpoint or evaluation that was deleted, `SecretUnreadable`."""
    entrant = session.get(Entrant, config.entrant)
    endpoint = session.get(Endpoint, entrant.endpoint_id) if entrant is not None and entrant.endpoint_id else None
    if endpoint is None:
        raise NotFound("the endpoint was deleted", code="unknown_endpoint", hint="Add another entrant.")
    policy = session.get(Model, endpoint.policy_model_id) if endpoint.policy_model_id else None
    return target_of(secrets, endpoint, policy, config.score)


def work(folder: Path, spec: StageSpec, config: AnswerConfig, target: Target, voice: Voice) -> Succeeded:
    """Ask for what is not there yet, then write all responses. Raises `EndpointGaveUp`."""
    prompts = [json.loads(line) for line in Path(spec.inputs["prompts"].path).read_bytes().splitlines()]
    kept = ResumableRows(folder / "checkpoints", spec.attempt, ("position", "sample", "turn"))
    total = sum(1 + len(prompt["follow_ups"]) for prompt in prompts) * config.samples
    if kept.rows:
        voice.say(Log(message=f"resuming: {len(kept.rows)} of {total} answers are done"))
    respondent = Respondent(target, voice)
    dialogue = Dialogue(config, respondent, kept)

    def progress() -> None:
        voice.say(Progress(done=len(kept.rows), total=total, unit="answers", phase="asking"))

    progress()
    samples = [(prompt, n) for prompt in prompts for n in range(config.samples)]
    respondent.all([partial(dialogue.answer, prompt, n) for prompt, n in samples], _THREADS, progress)
    rows = [_response(prompt, n, kept) for prompt, n in samples]
    empty = sum(not text.strip() for row in rows for text in row["turns"])
    output = ResponsesOutput(path=write_lines(folder, "responses.jsonl", rows), rows=len(rows))
    return Succeeded(outputs=[output], summary={"responses": len(rows), "answers": total, "empty": empty})


def _response(prompt: dict[str, Any], sample: int, kept: ResumableRows) -> dict[str, Any]:
    turns = [kept.rows[(prompt["position"], sample, turn)] for turn in range(1 + len(prompt["follow_ups"]))]
    tokens, finished = [turn["tokens"] for turn in turns], [turn["finished"] for turn in turns]
    return {
        "position": prompt["position"],
        "sample": sample,
        "turns": [turn["text"] for turn in turns],
        "tokens": None if None in tokens else tokens,
        "finished": None if None in finished else finished,
    }


def main(run_id: str, attempt: str) -> int:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else is printed goes to the log
    voice = Voice(out)
    logging.basicConfig(level="INFO", format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    for noisy in ("httpx", "httpcore", "openai"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    settings, folder = get_settings(), Path.cwd()
    try:
        spec = StageSpec.model_validate_json((folder / STAGE_FILE).read_bytes())
        assert (spec.run_id, spec.attempt) == (str(uuid.UUID(run_id)), int(attempt))
        engine = make_engine(settings.database_url, pool_size=1)
        with transaction(make_sessions(engine)) as session:
            secrets, config = Secrets(settings), spec.config
            run = session.get_one(Run, uuid.UUID(run_id))
            if isinstance(config, GenerateConfig):
                target = endpoint_generation.load_target(session, secrets, run, config)
            elif isinstance(config, AcademicConfig):
                target = endpoint_harness.load_target(session, secrets, run, config)
            else:
                assert isinstance(config, AnswerConfig)
                target = load_target(session, secrets, config)
        engine.dispose()
        if isinstance(config, AcademicConfig):
            return endpoint_harness.run_harness(folder, settings, target, voice)
        if isinstance(config, GenerateConfig):
            voice.say(endpoint_generation.work(folder, spec, config, target, voice))
        else:
            voice.say(work(folder, spec, config, target, voice))
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
