"""One answer of an OpenAI-compatible endpoint, as it is written. Nothing that the endpoint sends is trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import orjson

from steerboard.platform.security.masking import masked
from steerboard.platform.security.safe_http import read_start
from steerboard.registry.tables import Endpoint
from steerboard_contracts.conditions.format import template_arguments
from steerboard_contracts.decoding import Decoding, no_guidance
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.samples import Message

DEFAULT_NEW_TOKENS = 256
_LONGEST_LINE = 1 << 20
_LONGEST_ANSWER = 4 << 20
_LONGEST_ERROR = 64 << 10
_SHOWN = 300
_ITS_LOG = "Check that the server is still running; its log has the cause."


class EndpointRefused(SteerboardError):
    """The endpoint answered with a failure of its own; `extra["endpoint_status"]` is its HTTP status, if it had one."""

    code = "endpoint_refused"
    status = 502
    title = "The endpoint refused the request"


class EndpointUnreachable(SteerboardError):
    """No connection, no answer in time, or the connection broke."""

    code = "endpoint_unreachable"
    status = 502
    title = "The endpoint does not answer"
    retryable = True


class EndpointNonsense(SteerboardError):
    """Something answers there, but not as an OpenAI-compatible server would."""

    code = "endpoint_nonsense"
    status = 502
    title = "The endpoint's answer cannot be understood"


@dataclass(frozen=True)
class Finish:
    """The end of an answer. `reason` as the endpoint names it (`stop`, `length`); tokens where it counted them."""

    reason: str | None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


def stream_chat(
    client: httpx.Client,
    endpoint: Endpoint,
    key: str | None,
    messages: Sequence[Message | dict[str, str]],
    decoding: Decoding,
    *,
    score_text: str | None = None,
    seed: int | None = None,
) -> Iterator[str | Finish]:
    """The answer in pieces of text, then one `Finish`. `client` is one of `outbound.open_client`; `decoding.n` is not
    looked at: one call is one answer. Closing the iterator ends the request.

    The one space that a template may put before an answer is gone, as it is from those of our own engines: a reward
    model would take an answer with two spaces before it for another one.

    `score_text` (as `ConditionFormat.text` writes it) asks a policy for that score or condition, the empty string
    for an answer without any, None for the default of its chat template. Raises `EndpointRefused`,
    `EndpointUnreachable`, `EndpointNonsense`, `AddressRefused`, and `BadInput` (`no_guidance`).
    """
    reason: str | None = None
    usage: dict[str, Any] = {}
    length = 0
    begun = done = False
    for chunk in _chunks(client, endpoint, key, _body(endpoint, messages, decoding, score_text, seed)):
        if chunk is None:
            done = True
            break
        text, ended = _read(chunk, key)
        reason = ended or reason
        usage = chunk["usage"] if isinstance(chunk.get("usage"), dict) else usage
        if text and not begun:
            begun, text = True, text.removeprefix(" ")
        length += len(text)
        if length > _LONGEST_ANSWER:
            raise EndpointNonsense(f"the answer has more than {_LONGEST_ANSWER} characters")
        if text:
            yield text
    if not done and reason is None:
        raise EndpointUnreachable(
            f"{endpoint.base_url}: the connection ended before the answer did", hint="Check that the server still runs."
        )
    yield Finish(reason, _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))


def list_models(client: httpx.Client, endpoint: Endpoint, key: str | None) -> list[str]:
    """The names that `GET {base_url}/models` lists, at most 1000. Raises like `stream_chat`."""
    try:
        with client.stream("GET", f"{endpoint.base_url}/models", headers=_headers(key)) as response:
            _refuse_failure(response, key)
            body, whole = read_start(response, _LONGEST_ANSWER)
    except httpx.HTTPError as error:
        raise _unreachable(endpoint, error) from None
    try:
        document: Any = orjson.loads(body) if whole else None
        names: list[str] = [entry["id"] for entry in document["data"]][:1000]
        understood = all(isinstance(name, str) for name in names)
    except (orjson.JSONDecodeError, LookupError, TypeError):
        understood = False
    if not understood:
        raise EndpointNonsense(
            f"{endpoint.base_url}/models is not a list of models",
            hint="The base URL of an OpenAI-compatible server usually ends in /v1.",
        )
    return names


def _body(
    endpoint: Endpoint,
    messages: Sequence[Message | dict[str, str]],
    decoding: Decoding,
    score_text: str | None,
    seed: int | None,
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": endpoint.model,
        "messages": [turn if isinstance(turn, dict) else turn.model_dump() for turn in messages],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "max_tokens": decoding.max_new_tokens or DEFAULT_NEW_TOKENS,
    }
    # Not every server knows all fields, so fields with default values are omitted.
    if decoding.top_k:
        body["top_k"] = decoding.top_k
    if decoding.stop:
        body["stop"] = decoding.stop
    if seed is not None:
        body["seed"] = seed
    if score_text is not None:
        body["chat_template_kwargs"] = template_arguments(score_text)
    return body | guidance_fields(endpoint.guides, decoding.guidance, endpoint.name)


def guidance_fields(guides: bool, guidance: float, name: str) -> dict[str, Any]:
    """The fields by which a request asks for guidance, none where there is none. `guides`: the endpoint `name` takes
    them. Raises `BadInput` (`no_guidance`): a server that does not know them would answer unguided."""
    if guidance == 1:
        return {}
    if not guides:
        raise no_guidance(guidance, f"from endpoint {name!r}, which decodes by itself")
    return {"vllm_xargs": {"guidance": guidance}}


def _chunks(
    client: httpx.Client, endpoint: Endpoint, key: str | None, body: dict[str, Any]
) -> Iterator[dict[str, Any] | None]:
    """The JSON of each server-sent event; None is `[DONE]`."""
    url = f"{endpoint.base_url}/chat/completions"
    try:
        with client.stream("POST", url, json=body, headers=_headers(key)) as response:
            _refuse_failure(response, key)
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise EndpointNonsense(
                    f"{url} answers with {response.headers.get('content-type', 'no type')[:_SHOWN]!r}, not with a "
                    "stream of events",
                    hint="The base URL of an OpenAI-compatible server usually ends in /v1.",
                )
            for line in _lines(response):
                # Empty lines, comments and the stream's other fields say nothing here.
                if line.startswith(b"data:"):
                    yield _event(line.removeprefix(b"data:").strip())
    except httpx.HTTPError as error:
        raise _unreachable(endpoint, error) from None


def _lines(response: httpx.Response) -> Iterator[bytes]:
    rest = b""
    for chunk in response.iter_raw():
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
        if len(rest) > _LONGEST_LINE:
            raise EndpointNonsense(f"one line of the answer has more than {_LONGEST_LINE} bytes")
    yield rest


def _event(data: bytes) -> dict[str, Any] | None:
    if data == b"[DONE]":
        return None
    try:
        chunk = orjson.loads(data)
    except orjson.JSONDecodeError:
        chunk = None
    if not isinstance(chunk, dict):
        raise EndpointNonsense("an event of the answer is not a JSON object")
    return chunk


def _read(chunk: dict[str, Any], key: str | None) -> tuple[str, str | None]:
    """Text and finish reason of a chunk. A failure in the middle of a stream has no status of its own."""
    if chunk.get("error") or chunk.get("object") == "error":
        raise EndpointRefused(f"the endpoint stopped early: {_message(chunk, key)}", hint=_ITS_LOG)
    try:
        choices = chunk.get("choices") or [{}]
        text = (choices[0].get("delta") or {}).get("content") or ""
        reason = choices[0].get("finish_reason")
    except (AttributeError, LookupError, TypeError):
        text = None
    if not isinstance(text, str) or not isinstance(reason, str | None):
        raise EndpointNonsense("an event of the answer is not a piece of a chat completion")
    return text.replace("\x00", ""), reason[:_SHOWN] if reason else None


def _refuse_failure(response: httpx.Response, key: str | None) -> None:
    """Raise the error of an answer other than 2xx."""
    if response.is_success:
        return
    body, _ = read_start(response, _LONGEST_ERROR)
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = body.decode(errors="replace")
    hints = {
        401: "Check the endpoint's key.",
        403: "Check what the endpoint's key may do.",
        404: "Check the base URL, which usually ends in /v1, and the model's name.",
        429: "Wait a little, then try again.",
    }
    hint = "Redirects are not followed: give the final URL." if response.is_redirect else None
    if response.is_server_error:
        hint = _ITS_LOG
    message = _message(document, key)
    raise EndpointRefused(
        f"the endpoint answered {response.status_code}" + (f": {message}" if message else ""),
        hint=hint or hints.get(response.status_code),
        extra={"endpoint_status": response.status_code},
    )


def _message(document: Any, key: str | None) -> str:
    """The message of a failure, shortened. Some servers repeat the key that they refuse."""
    for _ in range(3):
        if not isinstance(document, dict):
            break
        document = next((document[name] for name in ("error", "message", "detail") if document.get(name)), "")
    text = document if isinstance(document, str) else ""
    text = " ".join(masked(text, key).replace("\x00", "").split())
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _headers(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 2**31 else None


def _unreachable(endpoint: Endpoint, error: httpx.HTTPError) -> EndpointUnreachable:
    if isinstance(error, httpx.TimeoutException):
        what = "took too long"
    elif isinstance(error, httpx.RemoteProtocolError | httpx.ReadError):
        what = "the connection ended before the answer did"
    else:
        what = str(error) or type(error).__name__
    return EndpointUnreachable(f"{endpoint.base_url}: {what}", hint="Check the base URL and that the server runs.")
