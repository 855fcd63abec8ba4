"""The middleware of `steerboard models serve --guidance`, over an application that stands in for vLLM's.

vLLM's own is served in tests/playground/test_vllm_server.py.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import orjson
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from steerboard_workers.engines.vllm.guidance.server import GuidedChat

CHAT = "/v1/chat/completions"
MESSAGES = [{"role": "user", "content": "Hi"}]
ASKED = {"model": "dt", "messages": MESSAGES, "chat_template_kwargs": {"rm_score": "5.00", "tone": "dry"}}


class World:
    """What reaches vLLM: the bodies by their path."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []
        self.tokens = [1, 2, 3]
        self.status = 200
        routes = [Route(path, self._answer, methods=["POST"]) for path in ("/tokenize", CHAT, "/v1/completions")]
        self.app = GuidedChat(Starlette(routes=routes))

    async def _answer(self, request: Request) -> JSONResponse:
        body = await request.body()
        assert int(request.headers["content-length"]) == len(body)
        self.seen.append((request.url.path, orjson.loads(body)))
        if request.url.path == "/tokenize":
            return JSONResponse({"tokens": self.tokens, "max_model_len": 8}, self.status)
        return JSONResponse({"answered": True})

    async def _post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://vllm") as client:
            return await client.post(path, json=body)

    def post(self, path: str = CHAT, **fields: Any) -> httpx.Response:
        # A thread of its own: the browser of other tests has an event loop in this one.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self._post(path, {**ASKED, **fields})).result()


@pytest.fixture
def world() -> World:
    return World()


def test_a_guided_chat_gets_its_prompt_without_the_condition(world: World) -> None:
    tools = [{"type": "function"}]
    answer = world.post(vllm_xargs={"guidance": 3, "session_id": "s"}, tools=tools, temperature=0.5)
    assert answer.json() == {"answered": True}
    (first, written), (second, chat) = world.seen
    assert (first, second) == ("/tokenize", CHAT)
    without = {"rm_score": "", "condition": "", "tone": "dry"}
    assert written == {"model": "dt", "messages": MESSAGES, "tools": tools, "chat_template_kwargs": without}
    asked = {"guidance": 3, "session_id": "s", "guidance_against": [1, 2, 3]}
    assert chat == {**ASKED, "tools": tools, "temperature": 0.5, "vllm_xargs": asked}


def test_requests_that_ask_for_no_guidance_pass_as_they_are(world: World) -> None:
    for fields in ({}, {"vllm_xargs": {"session_id": "s"}}, {"vllm_xargs": None}):
        world.post(**fields)
        assert world.seen.pop() == (CHAT, {**ASKED, **fields})
    world.post(vllm_xargs={"guidance": 1.0})
    assert world.seen == [(CHAT, {**ASKED, "vllm_xargs": {}})]


@pytest.mark.parametrize(
    ("path", "xargs", "words"),
    [
        ("/v1/completions", {"guidance": 3}, "guidance is for /v1/chat/completions alone"),
        (CHAT, {"guidance": 3, "guidance_against": [1, 2]}, "takes guidance alone"),
        (CHAT, {"guidance_pair": {}}, "takes guidance alone"),
    ],
)
def test_what_cannot_be_guided_is_refused_and_reaches_no_model(
    world: World, path: str, xargs: dict[str, Any], words: str
) -> None:
    answer = world.post(path, vllm_xargs=xargs)
    assert (answer.status_code, words in answer.json()["error"]["message"]) == (400, True)
    assert world.seen == []


def test_a_prompt_that_vllm_refuses_or_that_fills_the_window_is_not_answered(world: World) -> None:
    world.tokens = [1] * 8
    answer = world.post(vllm_xargs={"guidance": 3})
    assert (answer.status_code, "fills the 8 tokens" in answer.text) == (400, True)
    world.status = 404
    assert world.post(vllm_xargs={"guidance": 3}).status_code == 404
    assert {path for path, _ in world.seen} == {"/tokenize"}
