"""The answer stage's work, done by an endpoint: every prompt of an evaluation with its follow-ups."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.evaluation.entrants.endpoint_answers import Respondent, Target, seed_of, target_of, write_lines
from steerboard.evaluation.entrants.responses import turns_before_last
from steerboard.evaluation.event_writer import StageEventWriter
from steerboard.evaluation.tables import Entrant
from steerboard.platform.http.errors import NotFound
from steerboard.platform.security.secrets import Secrets
from steerboard.registry.endpoints.pins import endpoint_of
from steerboard.registry.tables import Endpoint, Model
from steerboard.runs.tables import Run
from steerboard_contracts.files.resumable_rows import ResumableRows
from steerboard_contracts.run_kinds.answer import AnswerConfig
from steerboard_contracts.stage.events import Log, Progress, Succeeded
from steerboard_contracts.stage.outputs import ResponsesOutput
from steerboard_contracts.stage.spec import StageSpec

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
                answer = self._respondent.ask(f"prompt {place[0]}", messages, decoding, seed)
                known = {"position": place[0], "sample": sample, "turn": turn, **answer}
                self._kept.add([known])
            turns.append(known["text"])


def load_target(session: Session, secrets: Secrets, run: Run, config: AnswerConfig) -> Target:
    """Raises `NotFound` for an endpoint or evaluation that was deleted, `EndpointChanged`, `SecretUnreadable`."""
    entrant = session.get(Entrant, config.entrant)
    endpoint = session.get(Endpoint, entrant.endpoint_id) if entrant is not None and entrant.endpoint_id else None
    if endpoint is None:
        raise NotFound("the endpoint was deleted", code="unknown_endpoint", hint="Add another entrant.")
    if config.pinned_endpoint is not None:
        endpoint = endpoint_of(session, session.get_one(Project, run.project_id), config.pinned_endpoint)
    policy = session.get(Model, endpoint.policy_model_id) if endpoint.policy_model_id else None
    return target_of(secrets, endpoint, policy, config.score, config.pinned_endpoint)


def work(
    folder: Path, spec: StageSpec, config: AnswerConfig, target: Target, event_writer: StageEventWriter
) -> Succeeded:
    """Ask for what is not there yet, then write all responses. Raises `EndpointGaveUp`."""
    prompts = [json.loads(line) for line in Path(spec.inputs["prompts"].path).read_bytes().splitlines()]
    kept = ResumableRows(folder / "checkpoints", spec.attempt, ("position", "sample", "turn"))
    total = sum(1 + len(prompt["follow_ups"]) for prompt in prompts) * config.samples
    if kept.rows:
        event_writer.say(Log(message=f"resuming: {len(kept.rows)} of {total} answers are done"))
    respondent = Respondent(target, event_writer)
    dialogue = Dialogue(config, respondent, kept)

    def progress() -> None:
        event_writer.say(Progress(done=len(kept.rows), total=total, unit="answers", phase="asking"))

    progress()
    samples = [(prompt, n) for prompt in prompts for n in range(config.samples)]
    respondent.all([partial(dialogue.answer, prompt, n) for prompt, n in samples], _THREADS, progress)
    rows = [_response(prompt, n, kept) for prompt, n in samples]
    empty = sum(not text.strip() for row in rows for text in row["turns"])
    output = ResponsesOutput(path=write_lines(folder, "responses.jsonl", rows), rows=len(rows))
    return Succeeded(outputs=[output], summary={"responses": len(rows), "answers": total, "empty": empty})


def _response(prompt: dict[str, Any], sample: int, kept: ResumableRows) -> dict[str, Any]:
    turns = [kept.rows[(prompt["position"], sample, turn)] for turn in range(1 + len(prompt["follow_ups"]))]

    def known(name: str) -> list[Any] | None:
        """The values of all turns, or none: rows of former attempts may lack one."""
        values = [turn.get(name) for turn in turns]
        return None if None in values else values

    return {
        "position": prompt["position"],
        "sample": sample,
        "turns": [turn["text"] for turn in turns],
        "tokens": known("tokens"),
        "finished": known("finished"),
        "prompt_tokens": known("prompt_tokens"),
        "seconds": known("seconds"),
    }
