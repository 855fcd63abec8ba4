"""Chat completions by OpenAI's own client. Tests write what a worker would; real ones answer in tests/e2e."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import openai
import pytest
from openai_world import OpenAIWorld
from sqlalchemy import delete, func, select

from steerboard.openai_api.chat import completions
from steerboard.openai_api.chat.answers import forget_left_behind
from steerboard.platform.database import transaction
from steerboard.platform.leases import LeaseLost
from steerboard.playground import claims
from steerboard.playground.errors import problem_document
from steerboard.playground.tables import Comparison, PlaygroundAnswer
from steerboard.runs.tables import WorkerRow
from steerboard_contracts.errors import BadInput
from support.patience import wait_until

HI: Any = [{"role": "user", "content": "Hi."}]


@pytest.fixture
def world(world: OpenAIWorld) -> OpenAIWorld:
    world.add_worker()
    return world


def comparisons(world: OpenAIWorld) -> list[Comparison]:
    with transaction(world.sessions) as session:
        return list(session.scalars(select(Comparison)))


def asked(world: OpenAIWorld) -> list[PlaygroundAnswer]:
    with transaction(world.sessions) as session:
        return list(session.scalars(select(PlaygroundAnswer)))


def say(world: OpenAIWorld, **values: Any) -> claims.Claim[Comparison]:
    """Writes to the next question as a worker does."""

    def taken() -> claims.Claim[Comparison] | None:
        with transaction(world.sessions) as session:
            return claims.claim_next(session, Comparison, "w", 60)

    claim = wait_until(taken)
    write(world, claim, **values)
    return claim


def write(world: OpenAIWorld, claim: claims.Claim[Comparison], **values: Any) -> None:
    with transaction(world.sessions) as session:
        claims.write_answers(session, claim, {0: values})


@contextmanager
def asking(call: Any) -> Iterator[Any]:
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(call)


def test_an_answer_has_its_text_its_end_and_true_counts_and_is_then_forgotten(
    world: OpenAIWorld, ours: openai.OpenAI
) -> None:
    done = {"state": "succeeded", "tokens": 3, "prompt_tokens": 11}
    with asking(lambda: ours.chat.completions.create(model="base", messages=HI, n=2, seed=5, max_tokens=9)) as future:
        say(world, text="one", finished=True, **done)
        say(world, text="two", finished=False, **done)
        answer = future.result()
    assert [(choice.message.content, choice.finish_reason) for choice in answer.choices] == [
        ("one", "stop"),
        ("two", "length"),
    ]
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (11, 6, 17)
    assert answer.model == "base"
    wait_until(lambda: not comparisons(world))
    assert asked(world) == []


def test_a_question_reaches_the_worker_as_it_was_asked(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    messages: Any = [
        {"role": "developer", "content": "Be short."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "!"}]},
        {"role": "assistant", "content": "Hello.", "refusal": None, "tool_calls": None},
        {"role": "user", "content": "And?"},
    ]
    call = {"temperature": 0.3, "top_p": 0.5, "max_completion_tokens": 7, "stop": "x", "user": "me", "seed": 4}
    with asking(lambda: ours.chat.completions.create(model="base", messages=messages, **call)) as future:  # type: ignore[arg-type]
        (answer,) = wait_until(lambda: asked(world))
        (comparison,) = comparisons(world)
        say(world, text="", state="succeeded", tokens=0, prompt_tokens=1, finished=True)
        assert future.result().choices[0].message.content == ""
    assert [message["role"] for message in comparison.prompt] == ["system", "user", "assistant", "user"]
    assert comparison.prompt[1]["content"] == "Hi!"
    assert (comparison.seed, comparison.blind) == (4, True)
    wanted = {"temperature": 0.3, "top_p": 0.5, "max_new_tokens": 7, "stop": ["x"], "guidance": 1.0, "top_k": 0}
    assert answer.decoding == wanted


def test_a_stream_brings_the_text_as_it_is_written(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    stream = ours.chat.completions.create(
        model="base", messages=HI, stream=True, stream_options={"include_usage": True}
    )
    first = next(stream)
    assert first.choices[0].delta.role == "assistant"
    claim = say(world, state="running", text="one")
    assert next(stream).choices[0].delta.content == "one"
    # Another attempt starts over, and what was shown is not shown again.
    write(world, claim, text="o")
    write(world, claim, text="one two", state="succeeded", tokens=2, prompt_tokens=3, finished=True)
    rest = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in rest if chunk.choices) == " two"
    assert [chunk.choices[0].finish_reason for chunk in rest if chunk.choices][-1] == "stop"
    assert rest[-1].choices == []
    assert rest[-1].usage is not None
    assert rest[-1].usage.total_tokens == 5
    wait_until(lambda: not comparisons(world))


def test_a_failure_is_an_error_with_its_code_also_in_a_stream(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    error = {"code": "out_of_memory", "title": "x", "detail": "too large for it", "hint": "use less"}
    with asking(lambda: ours.chat.completions.create(model="base", messages=HI)) as future:
        say(world, state="failed", error=error)
        with pytest.raises(openai.InternalServerError) as failed:
            future.result()
    assert failed.value.code == "out_of_memory"
    assert isinstance(failed.value.body, dict)
    assert failed.value.body["hint"] == "use less"
    stream = ours.chat.completions.create(model="base", messages=HI, stream=True)
    say(world, state="failed", error=error)
    with pytest.raises(openai.APIError, match="too large for it"):
        list(stream)


def test_a_request_that_does_not_fit_the_model_is_the_callers_fault(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    problem = problem_document(BadInput("the answer has no room", code="too_many_new_tokens"))
    with asking(lambda: ours.chat.completions.create(model="base", messages=HI)) as future:
        say(world, state="failed", error=problem)
        with pytest.raises(openai.BadRequestError) as failed:
            future.result()
    assert failed.value.code == "too_many_new_tokens"


def test_who_hangs_up_ends_the_answer(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    with pytest.raises(openai.APITimeoutError):
        ours.chat.completions.create(model="base", messages=HI, timeout=0.5)
    wait_until(lambda: not comparisons(world))
    stream = ours.chat.completions.create(model="base", messages=HI, stream=True)
    next(stream)
    claim = say(world, state="running", text="a")
    stream.close()
    wait_until(lambda: not comparisons(world))
    with pytest.raises(LeaseLost):
        write(world, claim, text="ab")


def test_an_answer_that_takes_too_long_is_given_up(
    world: OpenAIWorld, ours: openai.OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completions, "LIMIT_SECONDS", 0.3)
    with pytest.raises(openai.InternalServerError) as late:
        ours.chat.completions.create(model="base", messages=HI)
    assert (late.value.status_code, late.value.code) == (504, "answer_timeout")
    wait_until(lambda: not comparisons(world))


def test_what_a_crash_left_behind_is_swept_and_nothing_else(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    with asking(lambda: ours.chat.completions.create(model="base", messages=HI)) as future:
        (comparison,) = wait_until(lambda: comparisons(world))
        with transaction(world.sessions) as session:
            forget_left_behind(session)
        assert comparisons(world), "someone may wait for it still"
        with transaction(world.sessions) as session:
            session.get_one(Comparison, comparison.id).created_at = func.now() - func.make_interval(0, 0, 0, 0, 2)
        with transaction(world.sessions) as session:
            forget_left_behind(session)
        assert comparisons(world) == []
        with pytest.raises(openai.InternalServerError):
            future.result()


def test_what_cannot_be_followed_is_refused_by_name(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "unsupported_parameter", "tools"),
        ({"logprobs": True}, "unsupported_parameter", "logprobs"),
        ({"presence_penalty": 0.5}, "unsupported_parameter", "presence_penalty"),
        ({"response_format": {"type": "json_object"}}, "unsupported_parameter", "response_format"),
        ({"extra_body": {"best_of": 2}}, "unsupported_parameter", "best_of"),
        ({"extra_body": {"score": 5}}, "no_score_format", ""),
        ({"extra_body": {"guidance": 3}}, "no_guidance", ""),
        ({"n": 99}, "invalid_request", "n"),
        ({"temperature": -1}, "invalid_request", "temperature"),
        ({"model": "judge"}, "wrong_role", ""),
        ({"model": "nothing"}, "unknown_model", "model"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "invalid_request", "prompt"),
        ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "1"}]}, "invalid_request", ""),
        ({"max_tokens": 3, "max_completion_tokens": 4}, "unsupported_parameter", "max_tokens"),
    ]
    for changes, code, param in cases:
        with pytest.raises(openai.APIStatusError) as refused:
            ours.chat.completions.create(**{"model": "base", "messages": HI, **changes})
        assert refused.value.status_code in (400, 404), changes
        assert refused.value.code == code, changes
        assert param in ("", refused.value.param), (changes, refused.value.param)
    assert comparisons(world) == []


def test_without_a_worker_no_one_is_left_waiting(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    with transaction(world.sessions) as session:
        session.execute(delete(WorkerRow))
    with pytest.raises(openai.InternalServerError) as refused:
        ours.chat.completions.create(model="base", messages=HI)
    assert (refused.value.status_code, refused.value.code) == (503, "no_interactive_worker")


def test_models_are_listed_and_only_those_of_runs_are_deleted(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    assert [model.id for model in ours.models.list()] == ["base"], "a reward model writes no answers"
    assert ours.models.retrieve("base").owned_by == "default"
    with pytest.raises(openai.NotFoundError):
        ours.models.retrieve("nothing")
    with pytest.raises(openai.BadRequestError, match="dashboard"):
        ours.models.delete("base")


def test_chat_needs_the_scope_of_runs(world: OpenAIWorld) -> None:
    with world.client(world.token_of("read")) as reader, pytest.raises(openai.PermissionDeniedError):
        reader.chat.completions.create(model="base", messages=HI)
