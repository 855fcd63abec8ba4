"""A model at an endpoint, asked as a chat by the process that started this one, which has its key."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from lm_eval.api.model import LM

from steerboard_contracts.decoding import Decoding
from steerboard_contracts.errors import BadInput, SteerboardError
from steerboard_contracts.stage.events import Failed
from steerboard_contracts.stage.questions import LONGEST_LINE, MOST_AT_ONCE, ChatTurn, Question, Reply
from steerboard_workers.stages.harness.answers import Missing, RecordedAnswers
from steerboard_workers.stages.harness.options import cut, writing_of

# Services take no more, and answers are cut here in any case.
_STOPS = 4


class EndpointLost(SteerboardError):
    """Who asks the endpoint is not there. Another attempt continues after the answers that are kept."""

    code = "endpoint_lost"
    title = "The endpoint is no longer available"
    retryable = True


class EndpointModel(LM):  # type: ignore[misc]
    """Prompts are the JSON of a chat's turns, so that the server's own template is used. It gives no log-probs."""

    # The harness keeps it with its results.
    tokenizer_name = "endpoint"

    def __init__(self, answers: RecordedAnswers, at_once: int) -> None:
        super().__init__()
        self._answers = answers
        self._at_once = min(at_once, MOST_AT_ONCE)
        try:
            asker = socket.socket(fileno=os.dup(0))
        except OSError as error:  # started by hand
            raise _lost() from error
        self._questions, self._replies = asker.makefile("wb"), asker.makefile("rb")

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return json.dumps([{"role": turn["role"], "content": turn["content"]} for turn in chat_history])

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[Any]:
        return self._answers.fill("generate_until", requests, self._written)

    def loglikelihood(self, requests: list[Any]) -> NoReturn:
        raise no_log_probs(requests[0].task_name)

    def loglikelihood_rolling(self, requests: list[Any]) -> NoReturn:
        raise no_log_probs(requests[0].task_name)

    def _written(self, missing: list[Missing]) -> list[str]:
        """This many at a time, another one as soon as one is answered."""
        texts: dict[int, str] = {}
        questions = iter([_question(number, asked) for number, asked in enumerate(missing)])
        for _ in range(self._at_once):
            self._ask_next(questions)
        while len(texts) < len(missing):
            reply = self._reply()
            asked = missing[reply.number]
            text = cut(reply.text, writing_of(asked.request.args[1], asked.request.task_name).until)
            texts[reply.number] = text
            self._answers.keep(asked, text)
            self._ask_next(questions)
        return [texts[number] for number in range(len(missing))]

    def _ask_next(self, questions: Iterator[Question]) -> None:
        question = next(questions, None)
        if question is None:
            return
        try:
            self._questions.write(question.model_dump_json().encode() + b"\n")
            self._questions.flush()
        except OSError as error:
            raise _lost() from error

    def _reply(self) -> Reply:
        line = self._replies.readline(LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise _lost()
        reply = Reply.model_validate_json(line)
        if reply.failed is not None:
            raise _error(reply.failed)
        return reply


def check_written(tasks: Iterable[Any]) -> None:
    """Called before the first question. Raises `BadInput` (`no_log_probs`) for a task that needs more than written
    answers."""
    for task in tasks:
        if task.OUTPUT_TYPE != "generate_until":
            raise no_log_probs(task.config.task, task.OUTPUT_TYPE)


def no_log_probs(task: str, kind: str = "log-probs") -> BadInput:
    return BadInput(
        f"task {task} ({kind}) compares log-probs of given answers, which an endpoint does not provide",
        code="no_log_probs",
        hint="Leave it out, or ask it of a model of the project, with engine transformers or vllm.",
    )


def _question(number: int, asked: Missing) -> Question:
    prompt, options = asked.request.args
    writing = writing_of(options, asked.request.task_name)
    return Question(
        number=number,
        messages=[ChatTurn(**turn) for turn in json.loads(prompt)],
        decoding=Decoding(
            temperature=writing.temperature,
            top_p=writing.top_p,
            top_k=writing.top_k,
            max_new_tokens=writing.limit,
            stop=list(writing.until[:_STOPS]),
        ),
        # Services take 31 bits.
        seed=asked.seed & 0x7FFFFFFF,
    )


def _lost() -> EndpointLost:
    return EndpointLost("the process that asks the endpoint is gone", hint="The run's log has its last output.")


def _error(failed: Failed) -> SteerboardError:
    error = SteerboardError(failed.detail, code=failed.code, hint=failed.hint)
    error.retryable = failed.retryable
    return error
