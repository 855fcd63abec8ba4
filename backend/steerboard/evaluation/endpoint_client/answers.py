"""What an endpoint answered. Apart from its client, for the `openai` library takes half a second to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from steerboard.platform.texts import storable

LONGEST_CONTENT = 200_000


class AskFailed(Exception):
    """`code` is stable: `http_429`, `timeout`, `broken_connection`, `nonsense`, ... `detail` holds no key.

    `pause`: seconds that the endpoint asked to be left alone for. `perhaps_billed`: the request was sent and not
    refused before the work, so an answer may have been made.
    """

    def __init__(
        self, code: str, detail: str, *, retryable: bool, pause: float | None = None, perhaps_billed: bool = False
    ) -> None:
        super().__init__(f"{code}: {detail}")
        self.perhaps_billed = perhaps_billed
        self.code, self.detail, self.retryable, self.pause = code, detail, retryable, pause


@dataclass(frozen=True)
class Answer:
    """An endpoint's answer. `logprobs` as sent; tokens if it counted them."""

    content: str
    finish_reason: str | None = None
    logprobs: dict[str, Any] | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


def read_completion(content: bytes) -> Answer:
    """A chat completion from its JSON. Raises `AskFailed` (`nonsense`) for anything else, and (`no_room`) where all of
    the tokens that were allowed went into reasoning: the same request would end in the same way."""
    try:
        document = orjson.loads(content)
        choice = document["choices"][0]
        message = choice["message"]
        text, reason, refusal = message.get("content"), choice.get("finish_reason"), message.get("refusal")
        logprobs, usage = choice.get("logprobs"), document.get("usage")
    except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError):
        raise AskFailed(
            "nonsense", "the answer is not a chat completion", retryable=True, perhaps_billed=True
        ) from None
    if text is None and isinstance(refusal, str) and refusal:
        text, reason = refusal, "refusal"
    if text is None and reason == "content_filter":
        text = ""
    if not text and reason == "length":
        detail = "the answer is empty: its token limit was reached before it began. Raise max_tokens"
        raise AskFailed("no_room", detail, retryable=False, perhaps_billed=True)
    if not isinstance(text, str) or not isinstance(reason, str | None):
        raise AskFailed("nonsense", "the answer holds no text", retryable=True, perhaps_billed=True)
    if len(text) > LONGEST_CONTENT:
        detail = f"the answer has more than {LONGEST_CONTENT} characters"
        raise AskFailed("nonsense", detail, retryable=True, perhaps_billed=True)
    counts = usage if isinstance(usage, dict) else {}
    return Answer(
        content=storable(text),
        finish_reason=storable(reason)[:50] if reason else None,
        logprobs=_first_token(logprobs),
        prompt_tokens=_count(counts.get("prompt_tokens")),
        completion_tokens=_count(counts.get("completion_tokens")),
    )


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
