"""One attempt to get an answer from an endpoint, through the `openai` library. Nothing that it sends is trusted."""

from __future__ import annotations

import datetime as dt
import email.utils
import logging
import threading
from collections.abc import Iterator
from typing import Any, cast

import httpx
import openai
from openai import OpenAI

from steerboard.evaluation.endpoint_client.answers import Answer, AskFailed, read_completion
from steerboard.platform.security.masking import masked
from steerboard.platform.security.safe_http import AddressRefused, open_client
from steerboard.platform.settings import Settings
from steerboard.platform.texts import storable

log = logging.getLogger(__name__)

_LONGEST_BODY = 4 << 20
_SHOWN = 300
_LONGEST_PAUSE = 300.0
# What some models reject, recognised by their error: omitted, or sent under another name, from then on.
_ADAPTABLE = ("max_completion_tokens", "logprobs", "temperature")
# Not implemented, unavailable, overloaded: sent before the work, like every 4xx but 408. Any other 5xx may come from a
# proxy or a server that gave up when the model had written its answer, and was paid for it.
_BEFORE_THE_WORK = (501, 503, 529)
_NO_KEY = "none"


class Asker:
    """Asks one endpoint. Every call has a client of its own, whose whole life is limited: neither a silent server nor
    one that sends a byte at a time holds a thread for longer. Safe to use from several threads."""

    def __init__(self, settings: Settings, base_url: str, key: str | None, timeout_seconds: float) -> None:
        self._settings = settings
        self._base_url = base_url
        self._key = key
        self._timeout = timeout_seconds
        self._adapted: set[str] = set()
        self._lock = threading.Lock()

    def ask(self, body: dict[str, Any]) -> Answer:
        """Raises `AskFailed`; also once for each field of the body that the endpoint does not take (retryable)."""
        sent = self._adapt(body)
        with open_client(self._settings, timeout_seconds=self._timeout, total_seconds=self._timeout) as client:
            client.event_hooks["response"] = [_bound]
            try:
                return self._ask(client, sent)
            except openai.APIStatusError as error:
                raise self._refused(error, sent) from None
            except openai.APITimeoutError:
                raise self._late() from None
            except openai.APIConnectionError as error:
                raise self._broken(error.__cause__ or error) from None
            except (httpx.HTTPError, httpx.StreamError) as error:
                raise self._broken(error) from None
            except AddressRefused as error:
                detail = " ".join(filter(None, (f"{error.detail}.", error.hint)))
                raise AskFailed("address_refused", detail, retryable=False) from None

    def _ask(self, client: httpx.Client, body: dict[str, Any]) -> Answer:
        library = OpenAI(
            api_key=self._key or _NO_KEY,
            base_url=self._base_url,
            max_retries=0,
            timeout=self._timeout,
            http_client=cast(Any, client),
        )
        absent: dict[str, Any] = {} if self._key else {"Authorization": openai.Omit()}
        with library.chat.completions.with_streaming_response.create(**body, extra_headers=absent) as response:
            content = b"".join(response.http_response.iter_raw())
        return read_completion(content)

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

    def _refused(self, error: openai.APIStatusError, sent: dict[str, Any]) -> AskFailed:
        status, said = error.status_code, self._message(error.body)
        code = f"http_{status}"
        if status == 400:
            with self._lock:
                for field in _ADAPTABLE:
                    # Other requests that were under way have the field, too, and are refused after the first one.
                    if field in said and (field not in self._adapted or _has(sent, field)):
                        self._adapted.add(field)
                        log.info("the endpoint rejected the request (%s); retrying in another form", field)
                        return AskFailed(code, said, retryable=True, pause=0.0)
        detail = f"the endpoint answered {status}" + (f": {said}" if said else "")
        retryable = status in (408, 409, 425, 429) or status >= 500
        billed = status == 408 or (status >= 500 and status not in _BEFORE_THE_WORK)
        pause = retry_after(error.response.headers)
        return AskFailed(code, detail, retryable=retryable, pause=pause, perhaps_billed=billed)

    def _broken(self, error: BaseException) -> AskFailed:
        if isinstance(error, _TooLong):
            return AskFailed("nonsense", str(error), retryable=True, perhaps_billed=True)
        connected = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        if isinstance(error, httpx.TimeoutException):
            return self._late(perhaps_billed=connected)
        text = self._clean(str(error)) or type(error).__name__
        return AskFailed("broken_connection", text[:_SHOWN], retryable=True, perhaps_billed=connected)

    def _late(self, *, perhaps_billed: bool = True) -> AskFailed:
        detail = f"no answer within {self._timeout:g} s"
        return AskFailed("timeout", detail, retryable=True, perhaps_billed=perhaps_billed)

    def _message(self, document: Any) -> str:
        """The message of a failure, shortened."""
        for _ in range(3):
            if not isinstance(document, dict):
                break
            document = next((document[name] for name in ("error", "message", "detail") if document.get(name)), "")
        text = " ".join(self._clean(document).split()) if isinstance(document, str) else ""
        return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."

    def _clean(self, text: str) -> str:
        """Without the key, which some servers repeat, and without what Postgres cannot hold."""
        return storable(masked(text, self._key))


def _has(sent: dict[str, Any], field: str) -> bool:
    """Whether a request was sent in the form that a refusal which names `field` is about."""
    return ("max_tokens" if field == "max_completion_tokens" else field) in sent


def retry_after(headers: Any) -> float | None:
    """Seconds that `Retry-After` (seconds or a date) or `retry-after-ms` ask for, within bounds; None without them."""
    given = headers.get("retry-after-ms")
    try:
        if given is not None:
            return min(max(float(given) / 1000, 0.0), _LONGEST_PAUSE)
        given = headers.get("retry-after")
        if given is None:
            return None
        try:
            seconds = float(given)
        except ValueError:
            date = email.utils.parsedate_to_datetime(given)
            seconds = (date.astimezone(dt.UTC) - dt.datetime.now(dt.UTC)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), _LONGEST_PAUSE) if seconds == seconds else None


class _TooLong(httpx.StreamError):
    """A body that no one asked for."""


class _Bounded(httpx.SyncByteStream):
    def __init__(self, inner: httpx.SyncByteStream) -> None:
        self._inner = inner

    def __iter__(self) -> Iterator[bytes]:
        left = _LONGEST_BODY
        for chunk in self._inner:
            left -= len(chunk)
            if left < 0:
                raise _TooLong(f"the answer has more than {_LONGEST_BODY} bytes")
            yield chunk

    def close(self) -> None:
        self._inner.close()


def _bound(response: httpx.Response) -> None:
    """Called before the body is read by anyone: reading ends in time, and nothing is unpacked."""
    assert isinstance(response.stream, httpx.SyncByteStream)
    response.stream = _Bounded(response.stream)
    response.headers.pop("content-encoding", None)
