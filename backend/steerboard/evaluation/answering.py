"""The process of an endpoint's answers: `python -m steerboard.evaluation.answering RUN ATTEMPT`.

It takes the place of the answer stage, and reads and writes the same files in the attempt's folder, so that its
responses are registered in the same way. The database tells it nothing but the endpoint and its sealed key.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
import threading
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from steerboard.evaluation.judging.asking import Asker, AskFailed
from steerboard.evaluation.judging.pacing import Pace, backoff
from steerboard.evaluation.judging.process import Voice
from steerboard.evaluation.responses import turns_before_last
from steerboard.evaluation.tables import Entrant
from steerboard.platform.database import make_engine, make_sessions, transaction
from steerboard.platform.errors import NotFound
from steerboard.platform.secrets import Secrets
from steerboard.platform.settings import get_settings
from steerboard.registry.endpoints import key_of
from steerboard.registry.tables import Endpoint, Model
from steerboard_contracts.configs import AnswerConfig
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.stage import STAGE_FILE, Failed, Log, Progress, ResponsesOutput, StageSpec, Succeeded

log = logging.getLogger("steerboard.answering")

Place = tuple[int, int, int]
"""(position, sample, turn)"""
_THREADS = 4
_ATTEMPTS = 6
_SECONDS = 300.0
_NEW_TOKENS = 1024


class EndpointGaveUp(SteerboardError):
    """What was answered is kept, so that a resumed run asks only for the rest."""

    code = "endpoint_gave_up"
    title = "The endpoint does not answer"


@dataclass(frozen=True)
class Target:
    """Who is asked, under which name, and the score that its policy is asked for as it is written."""

    base_url: str
    model: str
    key: str | None
    score_text: str | None


class Answers:
    """What has been answered, one JSON line each as it comes; every attempt has a file of its own, and all are read."""

    def __init__(self, folder: Path, attempt: int) -> None:
        self.rows: dict[Place, dict[str, Any]] = {}
        self._lock = threading.Lock()
        for path in sorted(folder.glob("a*-rows.jsonl")):
            for line in path.read_bytes().splitlines():
                try:
                    row = json.loads(line)
                    self.rows[(row["position"], row["sample"], row["turn"])] = row
                except (ValueError, KeyError, TypeError):
                    continue  # torn by a kill: it is asked for again
        self._file = (folder / f"a{attempt}-rows.jsonl").open("ab")
        self._file.write(b"\n")

    def add(self, row: dict[str, Any]) -> None:
        with self._lock:
            self.rows[(row["position"], row["sample"], row["turn"])] = row
            self._file.write(json.dumps(row).encode() + b"\n")
            self._file.flush()


class Respondent:
    """Lets the endpoint answer all turns of one sample. Any number of threads use it at once."""

    def __init__(
        self,
        config: AnswerConfig,
        target: Target,
        asker: Asker,
        answers: Answers,
        stopping: threading.Event,
        voice: Voice,
    ) -> None:
        self._config, self._target, self._asker, self._answers = config, target, asker, answers
        self._stopping, self._voice = stopping, voice
        self._pace = Pace(None, stopping)

    def answer(self, prompt: dict[str, Any], sample: int) -> None:
        """What is kept already is not asked for again. Raises `EndpointGaveUp`."""
        turns: list[str] = []
        for turn in range(1 + len(prompt["follow_ups"])):
            place = prompt["position"], sample, turn
            known = self._answers.rows.get(place)
            if known is None:
                if self._stopping.is_set():
                    return
                known = self._ask(
                    place, turns_before_last(prompt["messages"], prompt["follow_ups"], [*turns, ""]), prompt
                )
                self._answers.add(known)
            turns.append(known["text"])

    def _ask(self, place: Place, messages: Sequence[dict[str, str]], prompt: dict[str, Any]) -> dict[str, Any]:
        body = self._body(place, messages, prompt)
        for attempt in range(1, _ATTEMPTS + 1):
            self._pace.wait()
            try:
                answer = self._asker.ask(body)
            except AskFailed as failure:
                self._voice.warn(f"prompt {place[0]}: {failure.code}: {failure.detail} (attempt {attempt})")
                if not failure.retryable or attempt == _ATTEMPTS:
                    error = EndpointGaveUp(
                        f"prompt {place[0]}: {failure.code}: {failure.detail}",
                        hint="What was answered is kept. Resume the run when the endpoint answers again.",
                    )
                    error.retryable = failure.retryable
                    raise error from None
                if failure.pause and failure.code in ("http_429", "http_503"):
                    self._pace.pause(failure.pause)
                self._stopping.wait(backoff(attempt) if failure.pause is None else failure.pause)
                continue
            return {
                "position": place[0],
                "sample": place[1],
                "turn": place[2],
                # The one space that a template may put before an answer is gone, as it is from our own engines'.
                "text": answer.content.removeprefix(" "),
                "tokens": answer.completion_tokens,
                "finished": None if answer.finish_reason is None else answer.finish_reason == "stop",
            }
        raise AssertionError("the last attempt returns or raises")

    def _body(self, place: Place, messages: Sequence[dict[str, str]], prompt: dict[str, Any]) -> dict[str, Any]:
        decoding = self._config.decoding
        temperature = self._config.temperatures.get(prompt["category"] or "", decoding.temperature)
        body: dict[str, Any] = {
            "model": self._target.model,
            "messages": list(messages),
            "temperature": temperature,
            "max_tokens": decoding.max_new_tokens or _NEW_TOKENS,
        }
        # Not every server knows all fields, so what says nothing is left out.
        if temperature > 0:
            body["seed"] = _seed(self._config.seed, place)
        if decoding.top_p < 1:
            body["top_p"] = decoding.top_p
        if decoding.stop:
            body["stop"] = decoding.stop
        extra: dict[str, Any] = {"top_k": decoding.top_k} if decoding.top_k else {}
        if self._target.score_text is not None:
            extra["chat_template_kwargs"] = {"rm_score": self._target.score_text}
        return body | ({"extra_body": extra} if extra else {})


def load_target(session: Session, secrets: Secrets, config: AnswerConfig) -> Target:
    """Raises `NotFound` for an endpoint or evaluation that was deleted, `SecretUnreadable`."""
    entrant = session.get(Entrant, config.entrant)
    endpoint = session.get(Endpoint, entrant.endpoint_id) if entrant is not None and entrant.endpoint_id else None
    if endpoint is None:
        raise NotFound("the endpoint was deleted", code="unknown_endpoint", hint="Add another entrant.")
    policy = session.get(Model, endpoint.policy_model_id) if endpoint.policy_model_id else None
    written = ModelInfo.model_validate(policy.info).score_format if policy is not None and policy.info else None
    score_text = written.text(config.score) if written is not None and config.score is not None else None
    return Target(endpoint.base_url, endpoint.model, key_of(secrets, endpoint), score_text)


def work(folder: Path, spec: StageSpec, target: Target, voice: Voice) -> Succeeded:
    """Ask for what is not there yet, then write all responses. Raises `EndpointGaveUp`."""
    config = spec.config
    assert isinstance(config, AnswerConfig)
    prompts = [json.loads(line) for line in Path(spec.inputs["prompts"].path).read_bytes().splitlines()]
    answers = Answers(folder / "checkpoints", spec.attempt)
    total = sum(1 + len(prompt["follow_ups"]) for prompt in prompts) * config.samples
    if answers.rows:
        voice.say(Log(message=f"{len(answers.rows)} of {total} answers are there already"))
    stopping = threading.Event()
    asker = Asker(get_settings(), target.base_url, target.key, _SECONDS)
    respondent = Respondent(config, target, asker, answers, stopping, voice)
    voice.say(Progress(done=len(answers.rows), total=total, unit="answers", phase="asking"))
    with ThreadPoolExecutor(_THREADS) as pool:
        asked = [pool.submit(respondent.answer, prompt, n) for prompt in prompts for n in range(config.samples)]
        try:
            for one in as_completed(asked):
                one.result()
                voice.say(Progress(done=len(answers.rows), total=total, unit="answers", phase="asking"))
        except BaseException:
            stopping.set()
            pool.shutdown(cancel_futures=True)
            raise
    rows = [_response(prompt, n, answers) for prompt in prompts for n in range(config.samples)]
    (folder / "outputs").mkdir(exist_ok=True)
    partial = folder / "outputs" / ".responses.partial"
    partial.write_text("".join(json.dumps(row) + "\n" for row in rows))
    partial.replace(folder / "outputs" / "responses.jsonl")
    empty = sum(not text.strip() for row in rows for text in row["turns"])
    output = ResponsesOutput(path="outputs/responses.jsonl", rows=len(rows))
    return Succeeded(outputs=[output], summary={"responses": len(rows), "answers": total, "empty": empty})


def _response(prompt: dict[str, Any], sample: int, answers: Answers) -> dict[str, Any]:
    turns = [answers.rows[(prompt["position"], sample, turn)] for turn in range(1 + len(prompt["follow_ups"]))]
    tokens, finished = [turn["tokens"] for turn in turns], [turn["finished"] for turn in turns]
    return {
        "position": prompt["position"],
        "sample": sample,
        "turns": [turn["text"] for turn in turns],
        "tokens": None if None in tokens else tokens,
        "finished": None if None in finished else finished,
    }


def _seed(seed: int, place: Place) -> int:
    """Of one request: samples and turns differ, and the same ones are asked for alike each time."""
    digest = hashlib.sha256(f"{seed}:{place}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


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
        assert isinstance(spec.config, AnswerConfig)
        assert (spec.run_id, spec.attempt) == (str(uuid.UUID(run_id)), int(attempt))
        engine = make_engine(settings.database_url, pool_size=1)
        with transaction(make_sessions(engine)) as session:
            target = load_target(session, Secrets(settings), spec.config)
        engine.dispose()
        voice.say(work(folder, spec, target, voice))
    except BrokenPipeError:
        return 1  # nobody listens any more: the guardian is about to end this process group
    except SteerboardError as error:
        voice.say(Failed(code=error.code, detail=error.detail, hint=error.hint, retryable=error.retryable))
        return 1
    except Exception as error:
        log.exception("asking the endpoint met an unexpected error")
        detail = f"{type(error).__name__}; the run's log has the traceback."
        voice.say(Failed(code="stage_crashed", detail=detail, retryable=True))
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("usage: python -m steerboard.evaluation.answering RUN ATTEMPT", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1], sys.argv[2]))
