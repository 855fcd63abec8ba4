"""Chat with an endpoint: a real server of this machine on the other side, which also misbehaves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from steerboard.platform.security.safe_http import open_client
from steerboard.platform.settings import Settings
from steerboard.registry.endpoints.client import (
    EndpointNonsense,
    EndpointRefused,
    EndpointUnreachable,
    Finish,
    stream_chat,
)
from steerboard.registry.tables import Endpoint
from steerboard_contracts.decoding import Decoding
from steerboard_contracts.errors import SteerboardError
from support.servers.other_server import Answer, OtherServer, other_server

KEY = "sk-very-secret"


@pytest.fixture
def other() -> Iterator[OtherServer]:
    with other_server() as server:
        yield server


@pytest.fixture
def client(home: Path) -> Iterator[httpx.Client]:
    with open_client(Settings(home=home, allowed_private="127.0.0.1"), timeout_seconds=5) as opened:
        yield opened


def piece(text: str | None, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text} if text is not None else {}, "finish_reason": finish}]}


def ask(client: httpx.Client, other: OtherServer, decoding: Decoding | None = None, **more: Any) -> list[str | Finish]:
    endpoint = Endpoint(base_url=f"{other.url}/v1", model="policy-7b")
    messages = [{"role": "user", "content": "Hi"}]
    return list(stream_chat(client, endpoint, KEY, messages, decoding or Decoding(), **more))


def test_an_answer_arrives_in_pieces_with_its_end_and_its_tokens(client: httpx.Client, other: OtherServer) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    other.answer = lambda _: Answer.events(
        {"choices": [{"delta": {"role": "assistant", "content": ""}}]},
        piece("Grüß "),
        piece("Gott"),
        piece(None, "stop"),
        usage,
        "[DONE]",
    )
    decoding = Decoding(temperature=0.7, top_p=0.9, top_k=20, max_new_tokens=50, stop=["User:"])
    found = ask(client, other, decoding, score_text="5.00", seed=7)
    assert found == ["Grüß ", "Gott", Finish("stop", 3, 2)]
    (seen,) = other.seen
    assert (seen.path, seen.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert seen.json == {
        "model": "policy-7b",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.7,
        "top_p": 0.9,
        "top_k": 20,
        "max_tokens": 50,
        "stop": ["User:"],
        "seed": 7,
        "chat_template_kwargs": {"rm_score": "5.00"},
    }


@pytest.mark.parametrize("pieces", [(" Hello", " you"), (" ", "Hello", " you"), ("Hello", " you")])
def test_the_one_space_that_a_template_puts_before_an_answer_is_not_part_of_it(
    client: httpx.Client, other: OtherServer, pieces: tuple[str, ...]
) -> None:
    other.answer = lambda _: Answer.events(*map(piece, pieces), piece(None, "stop"))
    assert ask(client, other)[:-1] == ["Hello", " you"]
    other.answer = lambda _: Answer.events(*map(piece, (" ", *pieces)), piece(None, "stop"))
    assert "".join(map(str, ask(client, other)[:-1])) == "".join(pieces)


def test_without_a_score_the_endpoint_is_not_told_of_one(client: httpx.Client, other: OtherServer) -> None:
    other.answer = lambda _: Answer.events(piece("x", "length"))
    assert ask(client, other)[-1] == Finish("length")
    assert "chat_template_kwargs" not in other.seen[0].json
    ask(client, other, score_text="")
    assert other.seen[1].json["chat_template_kwargs"] == {"rm_score": "", "condition": ""}


def test_a_piece_arrives_before_the_next_is_written(client: httpx.Client, other: OtherServer) -> None:
    read = threading.Event()
    first, last = Answer.events(piece("one"), piece("two", "stop")).pieces

    def when_read() -> bytes:
        assert read.wait(10)
        assert isinstance(last, bytes)
        return last

    other.answer = lambda _: Answer(200, [first, when_read], {"Content-Type": "text/event-stream"})
    endpoint = Endpoint(base_url=f"{other.url}/v1", model="m")
    answer = stream_chat(client, endpoint, None, [{"role": "user", "content": "Hi"}], Decoding())
    assert next(answer) == "one"
    read.set()
    assert list(answer) == ["two", Finish("stop")]


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (
            Answer.json({"error": {"message": f"bad key {KEY}", "code": 401}}, 401),
            EndpointRefused,
            r"401: bad key \*\*\*\n",
        ),
        (Answer.json({"detail": "no such model"}, 404), EndpointRefused, "404: no such model"),
        (Answer(500, [b"<html>" + b"x" * 100_000]), EndpointRefused, r"500: <html>x{294}\.\.\.\n"),
        (Answer(302, headers={"Location": "http://127.0.0.1:1/"}), EndpointRefused, "302"),
        (Answer.json({"choices": []}), EndpointNonsense, "application/json"),
        (Answer.events("no json"), EndpointNonsense, "not a JSON object"),
        (Answer.events([1]), EndpointNonsense, "not a JSON object"),
        (Answer.events({"choices": "x"}), EndpointNonsense, "not a piece"),
        (Answer.events({"choices": [{"delta": {"content": 5}}]}), EndpointNonsense, "not a piece"),
        (Answer.events("x" * (2 << 20)), EndpointNonsense, "one line"),
        (Answer.events(piece("half")), EndpointUnreachable, "ended before"),
        (
            Answer(
                200,
                Answer.events(piece("half")).pieces,
                {"Content-Type": "text/event-stream", "Content-Length": "9999"},
            ),
            EndpointUnreachable,
            "ended before",
        ),
        (Answer.events(piece("half"), {"error": {"message": "engine died"}}), EndpointRefused, "engine died"),
    ],
)
def test_what_goes_wrong_has_a_type_and_never_the_key(
    client: httpx.Client, other: OtherServer, answer: Answer, error: type[SteerboardError], says: str
) -> None:
    other.answer = lambda _: answer
    with pytest.raises(error, match=says) as caught:
        ask(client, other)
    assert KEY not in str(caught.value)
    assert caught.value.hint or error is EndpointNonsense  # of what the endpoint did, a next step


def test_a_server_that_is_not_there(client: httpx.Client, home: Path) -> None:
    endpoint = Endpoint(base_url="http://127.0.0.1:1/v1", model="m")
    with pytest.raises(EndpointUnreachable):
        list(stream_chat(client, endpoint, None, [{"role": "user", "content": "Hi"}], Decoding()))
