"""Asking an endpoint for many answers: one that is silent, and the fate of the others when one fails."""

from __future__ import annotations

import io
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from test_evaluation_processes import completion

from steerboard.evaluation.entrants import endpoint_answers
from steerboard.evaluation.entrants.endpoint_answers import EndpointGaveUp, Respondent, Target
from steerboard.evaluation.event_writer import StageEventWriter
from steerboard.platform.settings import Settings
from steerboard_contracts.decoding import Decoding
from support.servers.other_server import Answer, OtherServer, Seen, other_server


@pytest.fixture
def other() -> Iterator[OtherServer]:
    with other_server() as server:
        yield server


@pytest.fixture
def respondent(other: OtherServer, monkeypatch: pytest.MonkeyPatch) -> Respondent:
    monkeypatch.setattr(endpoint_answers, "get_settings", lambda: Settings(allowed_private="127.0.0.1"))
    monkeypatch.setattr(endpoint_answers, "_SECONDS", 0.5)
    return Respondent(Target(f"{other.url}/v1", "gpt-test", None, None), StageEventWriter(io.StringIO()))


def ask(respondent: Respondent, text: str) -> None:
    respondent.ask(text, [{"role": "user", "content": text}], Decoding(), 1)


def test_a_server_that_takes_requests_and_says_nothing_is_an_error_after_two_of_them(
    respondent: Respondent, other: OtherServer
) -> None:
    ended = threading.Event()
    other.answer = lambda _: (ended.wait(30), Answer.json({}))[1]
    began = time.monotonic()
    with pytest.raises(EndpointGaveUp, match=r"timeout: no answer within 0\.5 s") as caught:
        ask(respondent, "say red")
    ended.set()
    assert caught.value.retryable
    assert len(other.seen) == 2
    assert time.monotonic() - began < 25


def test_when_one_answer_cannot_be_had_no_other_is_asked_for_again(respondent: Respondent, other: OtherServer) -> None:
    asked: Counter[str] = Counter()
    both = threading.Event()

    def answer(seen: Seen) -> Answer:
        text = seen.json["messages"][-1]["content"]
        asked[text] += 1
        if text == "say red":
            both.wait(10)
            return Answer.json({"error": {"message": "no such model"}}, status=404)
        both.set()
        respondent.stopping.wait(10)
        return Answer.json({}, status=500)

    other.answer = answer
    jobs = [lambda text=text: ask(respondent, text) for text in ("say red", "say blue")]
    with pytest.raises(EndpointGaveUp, match="no such model"):
        respondent.all(jobs, 2, lambda: None)
    assert asked == {"say red": 1, "say blue": 1}


def test_the_space_before_an_answer_is_the_templates(respondent: Respondent, other: OtherServer) -> None:
    other.answer = lambda _: completion("  two spaces", "length")
    said = respondent.ask("it", [{"role": "user", "content": "hello"}], Decoding(), 1)
    assert said.pop("seconds") >= 0
    assert said == {"text": " two spaces", "prompt_tokens": 3, "tokens": 2, "finished": False}
