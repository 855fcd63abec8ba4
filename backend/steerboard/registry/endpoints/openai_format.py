"""OpenAI's Chat Completions API as JSON: requests, answers, pieces of answers, lists of models. Pure."""

from __future__ import annotations

from typing import Any

import orjson

from steerboard.registry.endpoints.chat import ChatRequest, Completion
from steerboard.registry.endpoints.failures import CHECK_ITS_URL, EndpointNonsense
from steerboard_contracts.conditions.format import template_arguments
from steerboard_files.texts import storable

LONGEST_CONTENT = 200_000
_MOST_MODELS = 1000
_SHOWN = 300


def request_body(request: ChatRequest) -> dict[str, Any]:
    """The body of a request. The answers of judges are kept by it: what it was for a request it has to stay."""
    body: dict[str, Any] = {
        "model": request.model,
        "messages": list(request.messages),
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
    }
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.top_k:
        body["top_k"] = request.top_k
    if request.stop:
        body["stop"] = list(request.stop)
    if request.seed is not None:
        body["seed"] = request.seed
    if request.top_logprobs is not None:
        body |= {"logprobs": True, "top_logprobs": request.top_logprobs}
    if request.score_text is not None:
        body["chat_template_kwargs"] = template_arguments(request.score_text)
    if request.guidance is not None:
        body["vllm_xargs"] = {"guidance": request.guidance}
    return body


def read_completion(content: bytes) -> Completion:
    """A chat completion. Raises `EndpointNonsense` for anything else, and (`no_room`) where all of the tokens that were
    allowed went into reasoning: the same request would end in the same way."""
    try:
        document = orjson.loads(content)
        choice = document["choices"][0]
        message = choice["message"]
        text, reason, refusal = message.get("content"), choice.get("finish_reason"), message.get("refusal")
        logprobs, usage = choice.get("logprobs"), document.get("usage")
    except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError):
        raise EndpointNonsense("the answer is not a chat completion") from None
    if text is None and isinstance(refusal, str) and refusal:
        text, reason = refusal, "refusal"
    if text is None and reason == "content_filter":
        text = ""
    if not text and reason == "length":
        detail = "the answer is empty: its token limit was reached before it began. Raise max_tokens"
        raise EndpointNonsense(detail, "no_room", retryable=False)
    if not isinstance(text, str) or not isinstance(reason, str | None):
        raise EndpointNonsense("the answer holds no text")
    if len(text) > LONGEST_CONTENT:
        raise EndpointNonsense(f"the answer has more than {LONGEST_CONTENT} characters")
    prompt_tokens, completion_tokens = read_usage(usage)
    return Completion(
        content=storable(text),
        finish_reason=storable(reason)[:50] if reason else None,
        logprobs=_first_token(logprobs),
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
    )


def read_piece(chunk: Any) -> tuple[str, str | None]:
    """Text and finish reason of one event of a stream. Raises `EndpointNonsense`."""
    if not isinstance(chunk, dict):
        raise EndpointNonsense("an event of the answer is not a JSON object")
    try:
        choices = chunk.get("choices") or [{}]
        text = (choices[0].get("delta") or {}).get("content") or ""
        reason = choices[0].get("finish_reason")
    except (AttributeError, LookupError, TypeError):
        text = None
    if not isinstance(text, str) or not isinstance(reason, str | None):
        raise EndpointNonsense("an event of the answer is not a piece of a chat completion")
    return storable(text.replace("\x00", "")), reason[:_SHOWN] if reason else None


def read_usage(usage: Any) -> tuple[int | None, int | None]:
    """Tokens of the prompt and of the answer, where they were counted."""
    counts = usage if isinstance(usage, dict) else {}
    return _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens"))


def read_models(content: bytes, nonsense: str) -> list[str]:
    """The names in a list of models. Raises `EndpointNonsense` with the text `nonsense`."""
    try:
        names: list[str] = [entry["id"] for entry in orjson.loads(content)["data"]][:_MOST_MODELS]
        understood = all(isinstance(name, str) for name in names)
    except (orjson.JSONDecodeError, LookupError, TypeError):
        understood = False
    if not understood:
        raise EndpointNonsense(nonsense, hint=CHECK_ITS_URL)
    return names


def _first_token(logprobs: Any) -> dict[str, Any] | None:
    """`choices[0].logprobs` cut to what verdicts are read from."""
    try:
        entries = [
            {"token": storable(entry["token"])[:50], "logprob": max(float(entry["logprob"]), -9999.0)}
            for entry in logprobs["content"][0]["top_logprobs"][:20]
        ]
    except (LookupError, TypeError, ValueError, AttributeError):
        return None
    finite = [entry for entry in entries if entry["logprob"] == entry["logprob"] and entry["logprob"] < 1e9]
    return {"content": [{"top_logprobs": finite}]} if finite else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None
