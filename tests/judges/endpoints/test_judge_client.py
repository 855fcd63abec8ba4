"""One request to an endpoint that may answer anything."""

from __future__ import annotations

import datetime as dt
import email.utils
import gzip
import json
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from judge_world import SECRET, completion

from steerboard.platform.settings import Settings
from steerboard.registry.endpoints import openai_compatible
from steerboard.registry.endpoints.chat import ChatRequest, Connection, Provider
from steerboard.registry.endpoints.failures import ChatFailed
from steerboard.registry.endpoints.providers import connect
from steerboard.registry.endpoints.rate_limit import retry_after
from support.servers.other_server import Answer, OtherServer, other_server

REQUEST = ChatRequest("gpt-x", [{"role": "user", "content": "?"}], temperature=0.0, max_tokens=5, top_logprobs=5)
BODY = {
    "model": "gpt-x",
    "messages": [{"role": "user", "content": "?"}],
    "temperature": 0.0,
    "max_tokens": 5,
    "logprobs": True,
    "top_logprobs": 5,
}


@pytest.fixture
def server() -> Iterator[OtherServer]:
    with other_server() as started:
        yield started


def asking(url: str, key: str | None = SECRET, *, seconds: float = 5, allowed_private: str = "127.0.0.1") -> Provider:
    settings = Settings(allowed_private=allowed_private)
    return connect(Connection(settings, f"{url}/v1", key, step_seconds=seconds, total_seconds=seconds))


@pytest.fixture
def asker(server: OtherServer) -> Provider:
    return asking(server.url)


def failure(asker: Provider) -> ChatFailed:
    with pytest.raises(ChatFailed) as caught:
        asker.complete(REQUEST)
    return caught.value


def test_an_answer_has_text_reason_tokens_and_the_first_tokens_weights(server: OtherServer, asker: Provider) -> None:
    entries = [{"token": "M", "logprob": -0.1, "bytes": [77]}, {"token": "m", "logprob": -9999.0}]
    server.answer = lambda _: completion("M", logprobs={"content": [{"token": "M", "top_logprobs": entries}]})
    answer = asker.complete(REQUEST)
    assert (answer.content, answer.finish_reason, answer.prompt_tokens, answer.completion_tokens) == (
        "M",
        "stop",
        100,
        7,
    )
    assert answer.logprobs is not None
    assert [entry["token"] for entry in answer.logprobs["content"][0]["top_logprobs"]] == ["M", "m"]
    [seen] = server.seen
    assert (seen.path, seen.json) == ("/v1/chat/completions", BODY)
    assert seen.headers["authorization"] == f"Bearer {SECRET}"
    assert seen.headers["accept-encoding"] == "identity"


def test_without_a_key_none_is_sent(server: OtherServer) -> None:
    server.answer = lambda _: completion("hi")
    asking(server.url, None).complete(REQUEST)
    assert "authorization" not in server.seen[0].headers


def test_texts_are_cleaned_of_what_the_database_cannot_hold(server: OtherServer, asker: Provider) -> None:
    body = json.dumps({"choices": [{"message": {"content": "a\x00b"}, "finish_reason": "s\x00"}]}).encode()
    server.answer = lambda _: Answer(200, [body], {"Content-Type": "application/json"})
    answer = asker.complete(REQUEST)
    assert (answer.content, answer.finish_reason) == ("a\ufffdb", "s\ufffd")


def test_a_refusal_of_its_own_field_is_a_refusal(server: OtherServer, asker: Provider) -> None:
    server.answer = lambda _: completion(None, refusal="I won't.")
    answer = asker.complete(REQUEST)
    assert (answer.content, answer.finish_reason) == ("I won't.", "refusal")


@pytest.mark.parametrize(
    "content",
    [
        b"<html>",
        b"",
        b"[]",
        b"null",
        b'{"choices": []}',
        b'{"choices": [{"message": {"content": 3}}]}',
        b'{"choices": [{"message": {"content": null}, "finish_reason": "stop"}]}',
        b'{"choices": [{"message": "hi"}]}',
        b'{"choices": {"0": 1}}',
        b'{"id": "x", "choices": [{"message": {"content": "[[5]]"',
        b"[" * 100_000,
    ],
)
def test_nonsense_is_named_and_may_be_asked_again(server: OtherServer, asker: Provider, content: bytes) -> None:
    server.answer = lambda _: Answer(200, [content], {"Content-Type": "application/json"})
    refused = failure(asker)
    assert (refused.reason, refused.retryable) == ("nonsense", True)


def test_odd_extras_do_no_harm(server: OtherServer, asker: Provider) -> None:
    document: dict[str, Any] = {
        "choices": [{"message": {"content": "[[5]]", "tool_calls": 3}, "finish_reason": None, "logprobs": "none"}],
        "usage": {"prompt_tokens": -1, "completion_tokens": "many"},
    }
    server.answer = lambda _: Answer.json(document)
    answer = asker.complete(REQUEST)
    assert (answer.content, answer.logprobs, answer.prompt_tokens, answer.completion_tokens) == (
        "[[5]]",
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("status", "retryable"),
    [(400, False), (401, False), (404, False), (422, False), (408, True), (429, True), (500, True), (503, True)],
)
def test_a_failure_is_counted_by_its_status(server: OtherServer, asker: Provider, status: int, retryable: bool) -> None:
    server.answer = lambda _: Answer.json({"error": {"message": f"no, {SECRET} is not it"}}, status)
    refused = failure(asker)
    assert (refused.reason, refused.retryable) == (f"http_{status}", retryable)
    assert refused.detail.endswith("no, *** is not it")
    assert SECRET not in str(refused)


@pytest.mark.parametrize(
    ("status", "billed"),
    [
        *((status, False) for status in (400, 409, 425, 429, 501, 503, 529)),
        *((status, True) for status in (408, 500, 502, 504, 520, 524)),
    ],
)
def test_what_fails_before_the_work_is_not_billed(
    server: OtherServer, asker: Provider, status: int, billed: bool
) -> None:
    server.answer = lambda _: Answer.json({"error": {"message": "no"}}, status)
    assert failure(asker).perhaps_billed is billed


def test_a_redirect_is_not_followed(server: OtherServer, asker: Provider) -> None:
    server.answer = lambda _: Answer(307, [], {"Location": f"{server.url}/elsewhere", "Content-Length": "0"})
    assert failure(asker).reason == "http_307"
    assert len(server.seen) == 1


def test_a_silent_server_is_a_failure_in_time(server: OtherServer) -> None:
    quick = asking(server.url, seconds=0.3)
    ended = threading.Event()

    def wait(seconds: float) -> bytes:
        ended.wait(seconds)
        return b" "

    # One sends nothing at all, the other a byte now and then for ever.
    for pieces in ([lambda: wait(60)], [lambda: wait(0.1)] * 600):
        server.answer = lambda _, pieces=pieces: Answer(200, list(pieces), {"Content-Type": "application/json"})  # type: ignore[misc]
        began = time.monotonic()
        refused = failure(quick)
        assert (refused.reason, refused.retryable) == ("timeout", True)
        assert time.monotonic() - began < 30
    ended.set()


def test_a_connection_that_breaks_is_a_failure(server: OtherServer, asker: Provider) -> None:
    server.answer = lambda _: Answer(200, [b'{"choi'], {"Content-Type": "application/json", "Content-Length": "500"})
    assert failure(asker).reason == "broken_connection"
    gone = asking("http://127.0.0.1:1")
    assert failure(gone).reason == "broken_connection"


@pytest.mark.parametrize("status", [200, 500])
def test_an_endless_answer_is_not_read_to_its_end(server: OtherServer, asker: Provider, status: int) -> None:
    sent = []

    def piece() -> bytes:
        sent.append(1)
        return b"x" * (1 << 20)

    server.answer = lambda _: Answer(status, [piece] * 64, {"Content-Type": "application/json"})
    assert failure(asker).reason in ("nonsense", "http_500")
    assert len(sent) < 20


def test_a_packed_answer_is_not_unpacked(server: OtherServer, asker: Provider) -> None:
    packed = gzip.compress(b'{"choices": [{"message": {"content": "' + b"x" * (3 << 20) + b'"}}]}')
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    server.answer = lambda _: Answer(200, [packed], headers)
    assert failure(asker).reason == "nonsense"


def test_an_address_that_is_not_allowed_is_not_called(server: OtherServer) -> None:
    refused = failure(asking(server.url, allowed_private=""))
    assert (refused.reason, refused.retryable) == ("address_refused", False)
    assert server.seen == []


def test_what_a_model_does_not_take_is_asked_in_another_way(server: OtherServer, asker: Provider) -> None:
    def picky(seen: Any) -> Answer:
        for field, complaint in (
            ("max_tokens", "Unsupported parameter: use 'max_completion_tokens' instead."),
            ("logprobs", "logprobs are not supported"),
            ("temperature", "'temperature' does not support 0.0"),
        ):
            if field in seen.json:
                return Answer.json({"error": {"message": complaint}}, 400)
        return completion("[[5]]")

    server.answer = picky
    for _ in range(3):
        refused = failure(asker)
        assert (refused.reason, refused.retryable) == ("http_400", True)
    assert asker.complete(REQUEST).content == "[[5]]"
    assert server.seen[-1].json == {"model": "gpt-x", "messages": BODY["messages"], "max_completion_tokens": 5}


def test_retry_after_is_seconds_milliseconds_or_a_date_within_bounds() -> None:
    soon = email.utils.format_datetime(dt.datetime.now(dt.UTC) + dt.timedelta(seconds=20))
    assert retry_after({"retry-after": "3"}) == 3.0
    assert retry_after({"retry-after": "0.25"}) == 0.25
    assert retry_after({"retry-after-ms": "250"}) == 0.25
    assert retry_after({"retry-after": soon}) == pytest.approx(20, abs=2)
    assert retry_after({"retry-after": "999999999"}) == 300.0
    assert retry_after({"retry-after": "-5"}) == 0.0
    for nonsense in ({}, {"retry-after": "soon"}, {"retry-after": "nan"}, {"retry-after-ms": ""}):
        assert retry_after(nonsense) is None


def test_the_key_is_in_no_log(server: OtherServer, asker: Provider, caplog: pytest.LogCaptureFixture) -> None:
    server.answer = lambda _: Answer.json({"error": {"message": f"temperature {SECRET}"}}, 400)
    with caplog.at_level(logging.INFO):
        failure(asker)
    assert SECRET not in caplog.text
    assert openai_compatible.log.name in {record.name for record in caplog.records}


def test_requests_that_were_under_way_adapt_like_the_first(server: OtherServer, asker: Provider) -> None:
    both_sent = threading.Barrier(2)

    def answer(request: Any) -> Answer:
        if "temperature" not in request.json:
            return completion("[[5]]")
        both_sent.wait(timeout=30)
        return Answer.json({"error": {"message": "temperature is not supported"}}, 400)

    server.answer = answer
    failures: list[ChatFailed] = []
    threads = [threading.Thread(target=lambda: failures.append(failure(asker))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [refusal.retryable for refusal in failures] == [True, True]
    assert asker.complete(REQUEST).content == "[[5]]"


@pytest.mark.parametrize("key", ["test", "A", "none", SECRET])
def test_a_key_is_masked_in_errors_and_never_in_answers(server: OtherServer, key: str) -> None:
    asker = asking(server.url, key)
    text = f"A test: none is testing {key}. [[A]]"
    server.answer = lambda _: completion(text)
    assert asker.complete(REQUEST).content == text
    server.answer = lambda _: Answer.json({"error": {"message": f"Key {key}, attested, is wrong"}}, 401)
    assert failure(asker).detail.endswith("Key ***, attested, is wrong")


@pytest.mark.parametrize("content", ["", None])
def test_an_answer_that_its_limit_left_no_room_for_is_asked_once(
    server: OtherServer, asker: Provider, content: str | None
) -> None:
    server.answer = lambda _: completion(content, reason="length")
    refused = failure(asker)
    assert (refused.reason, refused.retryable, refused.perhaps_billed) == ("no_room", False, True)
    assert "max_tokens" in refused.detail
