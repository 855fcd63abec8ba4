"""Middleware of vLLM's own server: a chat completion that asks for guidance gets its prompt without the condition, as
the model's chat template writes it, in addition to the one with it.

    {"messages": [...], "chat_template_kwargs": {"rm_score": "5.00"}, "vllm_xargs": {"guidance": 3}}
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from steerboard_contracts.conditions.format import template_arguments
from steerboard_workers.engines.vllm.guidance.pairs import AGAINST, FIELDS, GUIDANCE

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_CHAT = "/v1/chat/completions"
_TOKENIZE = "/tokenize"
_XARGS = "vllm_xargs"
# What decides the ids of a prompt.
_WRITING = ("model", "messages", "tools", "chat_template", "add_generation_prompt", "continue_final_message")


class GuidedChat:
    """ASGI middleware. Requests that ask for no guidance pass as they are."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or b"json" not in _header(scope, b"content-type"):
            await self._app(scope, receive, send)
            return
        body = await _body(receive)
        given = _document(body)
        asked = given.get(_XARGS)
        if not isinstance(asked, dict) or not any(name in asked for name in FIELDS):
            await self._app(scope, _replay(body, receive), send)
            return
        if any(name in asked for name in FIELDS if name != GUIDANCE):
            await _refuse(send, f"{_XARGS} takes {GUIDANCE} alone; the server adds the rest")
            return
        if asked[GUIDANCE] == 1:
            del asked[GUIDANCE]
        elif not scope["path"].endswith(_CHAT):
            await _refuse(send, f"{GUIDANCE} is for {_CHAT} alone, whose prompt can be written without its score")
            return
        else:
            status, answer = await self._without_condition(scope, receive, given)
            written = _document(answer)
            if status != 200 or not written:  # nothing is written for a client that has left
                await _answer(send, status, answer)
                return
            if len(written["tokens"]) >= written["max_model_len"]:
                await _refuse(send, f"the prompt without its score fills the {written['max_model_len']} tokens")
                return
            asked[AGAINST] = written["tokens"]
        body = json.dumps(given).encode()
        await self._app(_sized(scope, body), _replay(body, receive), send)

    async def _without_condition(self, scope: Scope, receive: Receive, given: dict[str, Any]) -> tuple[int, bytes]:
        """Status and body of vLLM's own `/tokenize` for the prompt without its condition."""
        fields = {name: given[name] for name in _WRITING if name in given}
        written = (given.get("chat_template_kwargs") or {}) | template_arguments("")
        body = json.dumps(fields | {"chat_template_kwargs": written}).encode()
        path = scope.get("root_path", "") + _TOKENIZE
        inner = _sized(scope, body) | {"path": path, "raw_path": path.encode(), "query_string": b""}
        status, parts = 500, list[bytes]()

        async def keep(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            parts.append(message.get("body", b""))

        await self._app(inner, _replay(body, receive), keep)
        return status, b"".join(parts)


def _header(scope: Scope, name: bytes) -> bytes:
    return next((value for key, value in scope["headers"] if key == name), b"")


def _document(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is, or an empty one: what is none is vLLM's to refuse."""
    try:
        given = json.loads(body)
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}


async def _body(receive: Receive) -> bytes:
    parts, more = [], True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


def _replay(body: bytes, after: Receive) -> Receive:
    """A body that was read before; `after` it, that the client leaves."""
    left = [body]

    async def receive() -> Message:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await after()

    return receive


def _sized(scope: Scope, body: bytes) -> dict[str, Any]:
    kept = [(name, value) for name, value in scope["headers"] if name not in (b"content-length", b"transfer-encoding")]
    return {**scope, "headers": [*kept, (b"content-length", str(len(body)).encode())]}


async def _refuse(send: Send, words: str) -> None:
    error = {"message": words, "type": "BadRequestError", "param": _XARGS, "code": 400}
    await _answer(send, 400, json.dumps({"error": error}).encode())


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
