"""A provider for a protocol of its own. A second provider of Steerboard is one module such as this, and its host."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from steerboard.registry.endpoints import providers
from steerboard.registry.endpoints.chat import ChatRequest, Completion, Connection, Finish
from steerboard.registry.endpoints.failures import EndpointUnreachable

URL = "https://fake.example/v1"
MODELS = ["gpt-x", "theirs"]


class FakeProvider:
    """Serves `MODELS`; `asked`: the requests to all of them. It is away when it is asked for the first time."""

    def __init__(self, connection: Connection, asked: list[ChatRequest]) -> None:
        assert (connection.base_url, connection.key) == (URL, "sk-fake")
        self._asked = asked

    def complete(self, request: ChatRequest) -> Completion:
        self._asked.append(request)
        if len(self._asked) == 1:
            raise EndpointUnreachable("the fake is away", "timeout", retryable=True)
        return Completion("Rating: [[4]]", "stop", prompt_tokens=3, completion_tokens=2)

    def stream(self, request: ChatRequest) -> Generator[str | Finish, None, None]:
        self._asked.append(request)
        yield from ("fake", " words", Finish("stop", 3, 2))

    def list_models(self) -> list[str]:
        return MODELS


def use_fake_provider(monkeypatch: pytest.MonkeyPatch) -> list[ChatRequest]:
    """Endpoints at `URL` are fakes from now on, with the key `sk-fake`. Returns what they are asked."""
    asked: list[ChatRequest] = []
    monkeypatch.setitem(providers.BY_HOST, "fake.example", lambda connection: FakeProvider(connection, asked))
    return asked
