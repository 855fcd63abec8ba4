"""The provider of OpenAI and of servers that speak its protocol, by the `openai` library: one attempt at a time.

The library adds nothing of its own: it repeats no request, follows no redirect, and what it knows of this machine, or
reads from variables such as OPENAI_CUSTOM_HEADERS, never leaves.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import httpx
import openai
from openai import OpenAI

from steerboard.platform.security.safe_http import AddressRefused, open_client
from steerboard.registry.endpoints import openai_format
from steerboard.registry.endpoints.bounded_body import BoundedBody
from steerboard.registry.endpoints.chat import ChatRequest, Completion, Connection, Finish
from steerboard.registry.endpoints.failures import CHECK_ITS_URL, ChatFailed, EndpointNonsense, EndpointRefused
from steerboard.registry.endpoints.http_failures import HttpFailures

log = logging.getLogger(__name__)
# Not what OPENAI_LOG asks for: the library would write out requests.
logging.getLogger("openai").setLevel(logging.WARNING)

_LONGEST_BODY = 4 << 20
_LONGEST_EVENT = 1 << 20
_LONGEST_ANSWER = 4 << 20
# What some models reject, recognised by their error: omitted, or sent under another name, from then on.
_ADAPTABLE = ("max_completion_tokens", "logprobs", "temperature")
_HEADERS = ("Host", "Accept", "Accept-Encoding", "Connection", "Content-Length", "Content-Type")


class OpenAICompatible:
    """Every call has a client of its own, whose whole life is limited: neither a silent server nor one that sends a
    byte at a time holds a thread for longer."""

    def __init__(self, connection: Connection) -> None:
        self._to = connection
        self._failures = HttpFailures(connection.base_url, connection.key, connection.total_seconds)
        self._adapted: set[str] = set()
        self._lock = threading.Lock()

    def complete(self, request: ChatRequest) -> Completion:
        """A field that the endpoint does not take is a failure once, which is retryable: it is not sent again."""
        sent = self._adapt(openai_format.request_body(request))
        too_long = f"the answer has more than {_LONGEST_BODY} bytes"
        try:
            with self._call(BoundedBody(_LONGEST_BODY, too_long), self._failures.lost) as library:
                try:
                    response = library.post("/chat/completions", cast_to=httpx.Response, body=sent)
                except openai.BadRequestError as error:
                    raise self._adapting(error, sent) or error from None
        except AddressRefused as error:
            detail = " ".join(filter(None, (f"{error.detail}.", error.hint)))
            raise EndpointRefused(detail, "address_refused") from None
        return openai_format.read_completion(response.content)

    def stream(self, request: ChatRequest) -> Generator[str | Finish, None, None]:
        sent = openai_format.request_body(request) | {"stream": True, "stream_options": {"include_usage": True}}
        body = BoundedBody(_LONGEST_EVENT, f"one line of the answer has more than {_LONGEST_EVENT} bytes")
        reason: str | None = None
        usage: Any = None
        length, begun = 0, False
        with self._call(body, self._failures.lost_live) as library, self._events(library, sent) as events:
            for chunk in self._documents(events, body):
                text, ended = openai_format.read_piece(chunk)
                reason = ended or reason
                usage = chunk["usage"] if isinstance(chunk.get("usage"), dict) else usage
                if text and not begun:
                    begun, text = True, text.removeprefix(" ")
                length += len(text)
                if length > _LONGEST_ANSWER:
                    raise EndpointNonsense(f"the answer has more than {_LONGEST_ANSWER} characters")
                if text:
                    yield text
        if reason is None and body.ended:
            raise self._failures.lost_live(httpx.RemoteProtocolError("no finish reason"))
        yield Finish(reason, *openai_format.read_usage(usage))

    def list_models(self) -> list[str]:
        nonsense = f"{self._to.base_url}/models is not a list of models"
        with self._call(BoundedBody(_LONGEST_BODY, nonsense, CHECK_ITS_URL), self._failures.lost_live) as library:
            response = library.get("/models", cast_to=httpx.Response)
        return openai_format.read_models(response.content, nonsense)

    @contextmanager
    def _call(self, body: BoundedBody, lost: Callable[[BaseException], ChatFailed]) -> Iterator[OpenAI]:
        to = self._to
        with open_client(to.settings, timeout_seconds=to.step_seconds, total_seconds=to.total_seconds) as client:
            only_ours = partial(self._only_ours, client.headers["User-Agent"])
            client.event_hooks = {"request": [only_ours], "response": [body.take]}
            try:
                yield OpenAI(
                    api_key="none",
                    base_url=to.base_url,
                    max_retries=0,
                    timeout=to.step_seconds,
                    http_client=cast(Any, client),
                )
            except openai.APIStatusError as error:
                raise self._failures.refused(cast(Any, error.response), error.body) from None
            except openai.APIConnectionError as error:
                raise lost(error.__cause__ or error) from None

    def _only_ours(self, agent: str, request: httpx.Request) -> None:
        """Called when the library has done its part."""
        ours = {"User-Agent": agent} | ({"Authorization": f"Bearer {self._to.key}"} if self._to.key else {})
        kept = {name: request.headers[name] for name in _HEADERS if name in request.headers}
        request.headers = httpx.Headers(kept | ours)

    def _events(self, library: OpenAI, sent: dict[str, Any]) -> openai.Stream[object]:
        stream_cls = openai.Stream[object]
        return library.post("/chat/completions", cast_to=object, body=sent, stream=True, stream_cls=stream_cls)

    def _documents(self, events: openai.Stream[object], body: BoundedBody) -> Iterator[Any]:
        """The JSON of each event."""
        kind = events.response.headers.get("content-type", "no type")
        if not kind.startswith("text/event-stream"):
            raise EndpointNonsense(
                f"{self._to.base_url}/chat/completions answers with {kind[:100]!r}, not with a stream of events",
                hint=CHECK_ITS_URL,
            )
        while True:
            try:
                chunk: Any = next(events)
            except StopIteration:
                return
            except openai.APIConnectionError:
                raise
            except openai.APIError as error:
                raise self._failures.stopped_early(error.body) from None
            except (ValueError, RecursionError):
                raise EndpointNonsense("an event of the answer is not a JSON object") from None
            body.left = _LONGEST_EVENT
            if isinstance(chunk, dict) and chunk.get("object") == "error":
                raise self._failures.stopped_early(chunk)
            yield chunk

    def _adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        sent = dict(body)
        if "max_completion_tokens" in self._adapted:
            sent["max_completion_tokens"] = sent.pop("max_tokens")
        if "logprobs" in self._adapted:
            sent.pop("logprobs", None)
            sent.pop("top_logprobs", None)
        if "temperature" in self._adapted:
            sent.pop("temperature", None)
        return sent

    def _adapting(self, error: openai.BadRequestError, sent: dict[str, Any]) -> EndpointRefused | None:
        """The failure of a request that is asked in another form from now on; None where that does not help."""
        message = self._failures.message(error.body)
        with self._lock:
            for field in _ADAPTABLE:
                # Other requests that were under way have the field, too, and are refused after the first one.
                if field in message and (field not in self._adapted or _has(sent, field)):
                    self._adapted.add(field)
                    log.info("the endpoint rejected the request (%s); retrying in another form", field)
                    return EndpointRefused(message, "http_400", retryable=True, pause=0.0)
        return None


def _has(sent: dict[str, Any], field: str) -> bool:
    """Whether a request was sent in the form that a refusal which names `field` is about."""
    return ("max_tokens" if field == "max_completion_tokens" else field) in sent
