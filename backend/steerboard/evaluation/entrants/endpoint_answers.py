"""Many answers of one endpoint: asked for in parallel, again where that helps, and kept through kills."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steerboard.evaluation.event_writer import StageEventWriter
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import get_settings
from steerboard.registry.endpoints.chat import ChatRequest, Completion, Connection, guidance_of
from steerboard.registry.endpoints.failures import ChatFailed
from steerboard.registry.endpoints.providers import connect
from steerboard.registry.endpoints.rate_limit import Pace
from steerboard.registry.endpoints.service import key_of, score_text
from steerboard.registry.tables import Endpoint, Model
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.decoding import Decoding
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.pinned_endpoint import PinnedEndpoint

_ATTEMPTS = 6
# A server that accepts a request without responding costs `_SECONDS` each time.
_SILENCES = 2
_SECONDS = 300.0
_NEW_TOKENS = 1024

Row = dict[str, Any]


class EndpointGaveUp(SteerboardError):
    """What was answered is kept, so that a resumed run asks only for the rest."""

    code = "endpoint_gave_up"
    title = "The endpoint does not answer"


@dataclass(frozen=True)
class Target:
    """Who is asked, under which name, and the condition that its policy is asked for as it is written.

    `new_tokens`: of an answer, by default. `guides`: it takes guidance, `name`: how we call it.
    """

    base_url: str
    model: str
    key: str | None
    score_text: str | None
    new_tokens: int = _NEW_TOKENS
    guides: bool = False
    name: str = ""


def target_of(
    secrets: Secrets,
    endpoint: Endpoint,
    policy: Model | None,
    score: Condition | None,
    pin: PinnedEndpoint | None = None,
) -> Target:
    """`policy`: which model of ours the endpoint serves, if it is one. `pin`: of the run, whose model is asked whatever
    the endpoint names now.

    Raises `BadInput` (`no_score_format`, `unknown_attribute`), `SecretUnreadable`."""
    info = ModelInfo.model_validate(policy.info) if policy is not None and policy.info else None
    # As our own engines do it: a small window has to hold the prompt too.
    new_tokens = min(_NEW_TOKENS, info.max_length // 2) if info is not None else _NEW_TOKENS
    written = score_text(endpoint, policy, score)
    model = endpoint.model if pin is None else pin.model
    return Target(
        endpoint.base_url, model, key_of(secrets, endpoint), written, new_tokens, endpoint.guides, endpoint.name
    )


class Respondent:
    """Lets the endpoint answer. Any number of threads use it at once."""

    def __init__(self, target: Target, event_writer: StageEventWriter) -> None:
        self.stopping = threading.Event()
        self._target, self._event_writer = target, event_writer
        self._provider = connect(Connection(get_settings(), target.base_url, target.key, _SECONDS, _SECONDS))
        self._pace = Pace(None, self.stopping)

    def ask(self, what: str, messages: Sequence[dict[str, str]], decoding: Decoding, seed: int) -> Row:
        """An answer's `text`, `prompt_tokens`, `tokens` and `finished`, None where the endpoint does not tell them,
        and its `seconds`, repeated requests included. Raises like `answer`."""
        begun = time.monotonic()
        answer = self.answer(what, messages, decoding, seed)
        return {
            # The one space that a template may put before an answer is gone, as it is from our own engines'.
            "text": answer.content.removeprefix(" "),
            "prompt_tokens": answer.prompt_tokens,
            "tokens": answer.completion_tokens,
            "seconds": round(time.monotonic() - begun, 3),
            "finished": None if answer.finish_reason is None else answer.finish_reason == "stop",
        }

    def answer(self, what: str, messages: Sequence[dict[str, str]], decoding: Decoding, seed: int) -> Completion:
        """One answer, as it is. `what` names the prompt in messages. Raises `EndpointGaveUp`, also when the work is
        being ended, and `BadInput` (`no_guidance`)."""
        request, silences = self._request(messages, decoding, seed), 0
        for attempt in range(1, _ATTEMPTS + 1):
            if not self._pace.wait():
                raise EndpointGaveUp(f"{what} is no longer requested")
            try:
                return self._provider.complete(request)
            except ChatFailed as failure:
                self._event_writer.warn(f"{what}: {failure.reason}: {failure.detail} (attempt {attempt})")
                silences += failure.reason == "timeout"
                if not failure.retryable or attempt == _ATTEMPTS or silences == _SILENCES:
                    error = EndpointGaveUp(
                        f"{what}: {failure.reason}: {failure.detail}",
                        hint="Finished answers are kept. Resume the run when the endpoint answers again.",
                    )
                    error.retryable = failure.retryable
                    raise error from None
                self.stopping.wait(self._pace.rest(failure, attempt))
        raise AssertionError("the last attempt returns or raises")

    def all(self, jobs: Iterable[Callable[[], None]], threads: int, on_done: Callable[[], None]) -> None:
        """Do all jobs, this many at a time. When one fails the others are ended, and its error is raised."""
        with ThreadPoolExecutor(threads) as pool:
            futures = [pool.submit(job) for job in jobs]
            try:
                for answer in as_completed(futures):
                    answer.result()
                    on_done()
            except BaseException:
                self.stopping.set()
                pool.shutdown(cancel_futures=True)
                raise

    def _request(self, messages: Sequence[dict[str, str]], decoding: Decoding, seed: int) -> ChatRequest:
        target = self._target
        # Fields with default values are omitted.
        return ChatRequest(
            model=target.model,
            messages=messages,
            temperature=decoding.temperature,
            max_tokens=decoding.max_new_tokens or target.new_tokens,
            top_p=decoding.top_p if decoding.top_p < 1 else None,
            top_k=decoding.top_k,
            stop=decoding.stop,
            seed=seed if decoding.temperature > 0 else None,
            score_text=target.score_text,
            guidance=guidance_of(target.guides, decoding.guidance, target.name),
        )


def seed_of(seed: int, place: tuple[int, ...]) -> int:
    """The seed of one request: samples and turns differ, and the same one is asked for alike each time."""
    digest = hashlib.sha256(f"{seed}:{place}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def write_lines(folder: Path, name: str, rows: Iterable[Row]) -> str:
    """An output of JSON lines, renamed into place; how the stage's last word names it."""
    (folder / "outputs").mkdir(exist_ok=True)
    partial = folder / "outputs" / f".{name}.partial"
    with partial.open("w") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
    partial.replace(folder / "outputs" / name)
    return f"outputs/{name}"
