"""Environments of the package `verifiers` (0.1) as environments of a file: a base class for the file's `Environment`.

`verifiers` runs a rollout by itself and asks a client for each answer of a model. The client here waits for the answers
that `step` hears, so that the environment's own code decides what follows them and when the rollout ends.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import verifiers
from verifiers.clients import Client
from verifiers.types import Response, ResponseMessage

_MODEL = "policy"


class VerifiersEnvironment:
    """Subclasses give the `name` of an installed environment and the `arguments` of its `load_environment`, or `load`.

    The rubric's reward comes with the last turn, so the environment must end a rollout before `max_turns` of the run
    does."""

    name: ClassVar[str]
    arguments: ClassVar[dict[str, Any]] = {}

    @classmethod
    def load(cls) -> Any:
        return verifiers.load_environment(cls.name, **cls.arguments)

    def example(self, row: dict[str, Any]) -> dict[str, Any]:
        """What `verifiers` makes a rollout of: the example of its own dataset with the number of the row, which begins
        again at its end."""
        dataset = _loaded(self.load).get_dataset()
        example: dict[str, Any] = dataset[row["row"] % len(dataset)]
        return example

    def reset(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        """Raises ValueError for an environment with tools, whose calls are not texts."""
        self._rollout = _Rollout(_loaded(self.load), self.example(row))
        return [_message(message) for message in self._rollout.prompt]

    def step(self, answer: str) -> tuple[list[dict[str, Any]], float | None, bool]:
        """Raises ValueError where the environment changes earlier turns, and what it raises itself."""
        before = len(self._rollout.prompt) + 1
        earlier = [_message(message) for message in self._rollout.prompt]
        output = self._rollout.answer(answer)
        if output is not None:
            if output["error"] is not None:
                raise RuntimeError(f"verifiers: {output['error']}")
            return [], output["reward"], True
        asked = [_message(message) for message in self._rollout.prompt]
        if asked[: before - 1] != earlier:
            raise ValueError("the environment changes earlier turns, which the model has seen already")
        return asked[before:], None, False

    def __del__(self) -> None:
        if rollout := getattr(self, "_rollout", None):
            rollout.abandon()


class _Waiting(Client[Any, Any, Any, Any]):  # type: ignore[misc]
    """The client of one rollout: `asked` gets each prompt, and `answer` gives what follows it."""

    def __init__(self, asked: queue.SimpleQueue[Any]) -> None:
        super().__init__(None)
        self._asked = asked
        self._answers: asyncio.Queue[str] = asyncio.Queue()

    def answer(self, text: str) -> None:
        _loop().call_soon_threadsafe(self._answers.put_nowait, text)

    def setup_client(self, config: Any) -> None:
        return None

    async def to_native_tool(self, tool: Any) -> Any:
        raise ValueError(f"the environment offers the tool {tool.name}, and answers here are texts")

    async def to_native_prompt(self, messages: Any) -> tuple[Any, dict[str, Any]]:
        return messages, {}

    async def get_native_response(self, prompt: Any, *_: Any, **__: Any) -> str:
        self._asked.put(prompt)
        return await self._answers.get()

    async def raise_from_native_response(self, response: str) -> None:
        pass

    async def from_native_response(self, response: str) -> Any:
        message = ResponseMessage(content=response, finish_reason="stop", is_truncated=False)
        return Response(id="", created=0, model=_MODEL, message=message)

    async def close(self) -> None:
        pass


class _Rollout:
    """`prompt`: the messages that the next answer follows."""

    def __init__(self, environment: Any, example: dict[str, Any]) -> None:
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._client = _Waiting(self._events)
        self._future = asyncio.run_coroutine_threadsafe(
            environment.run_rollout(example, self._client, _MODEL, {}), _loop()
        )
        self._future.add_done_callback(self._events.put)
        self.prompt: list[Any] = []
        if (output := self._next()) is not None:
            raise ValueError(f"the rollout ended before the first answer: {output['error']}")

    def answer(self, text: str) -> Any:
        """The output of `verifiers` once the rollout has ended, None before that. Raises what it raises."""
        self._client.answer(text)
        return self._next()

    def abandon(self) -> None:
        self._future.cancel()

    def _next(self) -> Any:
        event = self._events.get()
        if event is self._future:
            return self._future.result()
        self.prompt = list(event)
        return None


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="verifiers", daemon=True).start()
    return loop


@cache
def _loaded(load: Callable[[], Any]) -> Any:
    """One serves all rollouts of the process."""
    return load()


def _message(message: Any) -> dict[str, Any]:
    given = message.model_dump(exclude_none=True) if hasattr(message, "model_dump") else dict(message)
    content = given.get("content")
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        if len(texts) != len(content) or None in texts:
            raise ValueError("the environment shows something else than texts")
        content = "".join(map(str, texts))
    return {"role": given["role"], "content": content or ""}
