"""Chat with an endpoint: a real server of this machine on the other side, which also misbehaves."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steerboard.platform.settings import Settings
from steerboard.registry.endpoints.chat import ChatRequest, Connection, Finish, Provider
from steerboard.registry.endpoints.failures import EndpointNonsense, EndpointRefused, EndpointUnreachable
from steerboard.registry.endpoints.providers import connect
from steerboard_contracts.errors import SteerboardError
from support.servers.other_server import Answer, OtherServer, other_server

KEY = "sk-very-secret"


@pytest.fixture
def other() -> Iterator[OtherServer]:
    with other_server() as server:
        yield server


@pytest.fixture
def provider(home: Path, other: OtherServer) -> Provider:
    return asking(home, other.url)


def asking(home: Path, url: str) -> Provider:
    return connect(Connection(Settings(home=home, allowed_private="127.0.0.1"), f"{url}/v1", KEY, 5, 60))


def piece(text: str | None, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text} if text is not None else {}, "finish_reason": finish}]}


def raw_events(*pieces: bytes) -> Answer:
    return Answer(200, list(pieces), {"Content-Type": "text/event-stream"})


def request(**more: Any) -> ChatRequest:
    return ChatRequest("policy-7b", [{"role": "user", "content": "Hi"}], temperature=0.7, max_tokens=50, **more)


def ask(provider: Provider, **more: Any) -> list[str | Finish]:
    return list(provider.stream(request(**more)))


def test_an_answer_arrives_in_pieces_with_its_end_and_its_tokens(provider: Provider, other: OtherServer) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    other.answer = lambda _: Answer.events(
        {"choices": [{"delta": {"role": "assistant", "content": ""}}]},
        piece("Grüß "),
        piece("Gott"),
        piece(None, "stop"),
        usage,
        "[DONE]",
    )
    pieces = ask(provider, top_p=0.9, top_k=20, stop=["User:"], score_text="5.00", seed=7, guidance=3)
    assert pieces == ["Grüß ", "Gott", Finish("stop", 3, 2)]
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
        "vllm_xargs": {"guidance": 3},
    }


@pytest.mark.parametrize("pieces", [(" Hello", " you"), (" ", "Hello", " you"), ("Hello", " you")])
def test_the_one_space_that_a_template_puts_before_an_answer_is_not_part_of_it(
    provider: Provider, other: OtherServer, pieces: tuple[str, ...]
) -> None:
    other.answer = lambda _: Answer.events(*map(piece, pieces), piece(None, "stop"))
    assert ask(provider)[:-1] == ["Hello", " you"]
    other.answer = lambda _: Answer.events(*map(piece, (" ", *pieces)), piece(None, "stop"))
    assert "".join(map(str, ask(provider)[:-1])) == "".join(pieces)


def test_without_a_score_the_endpoint_is_not_told_of_one(provider: Provider, other: OtherServer) -> None:
    other.answer = lambda _: Answer.events(piece("x", "length"))
    assert ask(provider)[-1] == Finish("length")
    assert "chat_template_kwargs" not in other.seen[0].json
    ask(provider, score_text="")
    assert other.seen[1].json["chat_template_kwargs"] == {"rm_score": "", "condition": ""}


def test_a_piece_arrives_before_the_next_is_written(provider: Provider, other: OtherServer) -> None:
    read = threading.Event()
    first, last = Answer.events(piece("one"), piece("two", "stop")).pieces

    def when_read() -> bytes:
        assert read.wait(10)
        assert isinstance(last, bytes)
        return last

    other.answer = lambda _: Answer(200, [first, when_read], {"Content-Type": "text/event-stream"})
    answer = provider.stream(request())
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
        (Answer.events("[" * 100_000), EndpointNonsense, "not a JSON object"),
        (
            raw_events(b"data: \xff\n\n"),
            EndpointNonsense,
            "not a JSON object",
        ),
        (Answer.events("x" * (2 << 20)), EndpointNonsense, "one line"),
        (
            raw_events(*[b"data: x\n" * 100_000] * 4),
            EndpointNonsense,
            "one line",
        ),
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
        (Answer.events(piece("half"), {"object": "error", "message": f"not {KEY}"}), EndpointRefused, r"not \*\*\*"),
    ],
)
def test_what_goes_wrong_has_a_type_and_never_the_key(
    provider: Provider, other: OtherServer, answer: Answer, error: type[SteerboardError], says: str
) -> None:
    other.answer = lambda _: answer
    with pytest.raises(error, match=says) as caught:
        ask(provider)
    assert KEY not in str(caught.value)
    assert caught.value.hint or error is EndpointNonsense  # of what the endpoint did, a next step


def test_a_server_that_is_not_there(home: Path) -> None:
    with pytest.raises(EndpointUnreachable, match=r"http://127\.0\.0\.1:1/v1: .*refused"):
        ask(asking(home, "http://127.0.0.1:1"))


def test_an_end_that_the_server_announces_needs_no_reason(provider: Provider, other: OtherServer) -> None:
    other.answer = lambda _: Answer.events(piece("whole"), "[DONE]")
    assert ask(provider) == ["whole", Finish(None)]


def test_an_answer_that_is_no_longer_wanted_ends_its_request(provider: Provider, other: OtherServer) -> None:
    gone = threading.Event()

    def pieces() -> Iterator[Any]:
        try:
            while True:
                yield from Answer.events(piece("more ")).pieces
        finally:
            gone.set()

    other.answer = lambda _: Answer(200, pieces(), {"Content-Type": "text/event-stream"})
    answer = provider.stream(request())
    assert next(answer) == "more "
    answer.close()
    assert gone.wait(30)


def test_a_surrogate_by_itself_is_stored_as_a_question_mark(provider: Provider, other: OtherServer) -> None:
    event = b'data: {"choices": [{"delta": {"content": "a\\ud800b\\u0000"}, "finish_reason": "stop"}]}\n\n'
    other.answer = lambda _: raw_events(event)
    assert ask(provider) == ["a?b", Finish("stop")]


def test_nothing_of_the_environment_decides_or_leaves(
    home: Path, other: OtherServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "OPENAI_API_KEY": "sk-of-someone",
        "OPENAI_BASE_URL": "http://127.0.0.1:1/v1",
        "OPENAI_ORG_ID": "org-of-someone",
        "OPENAI_PROJECT_ID": "project-of-someone",
        "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer sk-of-someone\nX-Internal: someone",
        "HTTP_PROXY": "http://127.0.0.1:1",
        "ALL_PROXY": "http://127.0.0.1:1",
    }.items():
        monkeypatch.setenv(name, value)
    other.answer = lambda seen: Answer.json({"data": []}) if seen.path.endswith("models") else Answer.json({}, 503)
    provider = asking(home, other.url)
    with pytest.raises(EndpointRefused):
        provider.complete(request())
    with pytest.raises(EndpointRefused):
        ask(provider)
    assert provider.list_models() == []
    # A request is made once, although 503 asks for another one.
    assert [seen.path for seen in other.seen] == ["/v1/chat/completions", "/v1/chat/completions", "/v1/models"]
    for seen in other.seen:
        assert seen.headers["authorization"] == f"Bearer {KEY}"
        assert seen.headers["user-agent"].startswith("steerboard/")
        ours = {"host", "accept", "accept-encoding", "connection", "content-type", "content-length"}
        assert {name.lower() for name in seen.headers} <= {*ours, "authorization", "user-agent"}


def test_the_library_is_not_loaded_before_an_endpoint_is_asked() -> None:
    loaded = "import sys, steerboard.registry.endpoints.service; print('openai' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", loaded], capture_output=True, check=True, text=True)
    assert shown.stdout == "False\n"
