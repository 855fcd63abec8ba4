"""The process that has vLLM, started by the one that trains: `python -m steerboard_workers.engines.live.serve FD`."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from steerboard_contracts.engine import VllmOptions
from steerboard_contracts.errors import SteerboardError
from steerboard_workers.engines.live.messages import Asked, Broken, Done, Draw, Drawn, Start, Update
from steerboard_workers.engines.vllm_host import VllmHost
from steerboard_workers.engines.watchdog import EngineFailed


class LiveServer:
    """Does what it is asked until the other end of `connection` is closed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._host: VllmHost | None = None

    def run(self) -> None:
        while True:
            try:
                asked: Asked = self._connection.recv()
            except (EOFError, OSError):
                if self._host is not None:
                    self._host.close()
                return
            try:
                answer = self._answer(asked)
            except SteerboardError as error:
                self._give_up(error)
            with suppress(OSError):  # as above, if nobody is there any more
                self._connection.send(answer)

    def _answer(self, asked: Asked) -> Done | Drawn:
        if isinstance(asked, Start):
            self._host = VllmHost(
                Path(asked.folder),
                task="generate",
                dtype=asked.dtype,
                window=asked.window,
                sequences=asked.sequences,
                options=VllmOptions(**asked.options),
                device=asked.device,
                give_up=self._give_up,
                live=True,
            )
            return Done()
        assert self._host is not None
        if isinstance(asked, Update):
            self._host.take_weights(asked.layout)
            return Done()
        return self._draw(self._host, asked)

    def _draw(self, host: VllmHost, asked: Draw) -> Drawn:
        for place, prompt in enumerate(asked.prompts):
            host.add(str(place), prompt, _params(asked, place))
        found: dict[int, tuple[list[int], list[float]]] = {}
        for output in host.outputs():
            (answer,) = output.outputs
            ids = list(answer.token_ids)
            of_tokens = [step[token].logprob for step, token in zip(answer.logprobs, ids, strict=True)]
            found[int(output.request_id)] = (ids, of_tokens)
        host.rest()
        if len(found) < len(asked.prompts):
            raise EngineFailed(
                f"{len(asked.prompts) - len(found)} answers never came", hint="The run's log has vLLM's output."
            )
        ordered = [found[place] for place in range(len(asked.prompts))]
        return Drawn([ids for ids, _ in ordered], [log_probs for _, log_probs in ordered])

    def _give_up(self, error: SteerboardError) -> NoReturn:
        with suppress(OSError):  # the other end may be gone
            self._connection.send(Broken(error.code, error.detail, error.hint, error.retryable))
        os._exit(1)


def _params(asked: Draw, place: int) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(
        temperature=asked.temperature,
        max_tokens=asked.limits[place],
        seed=asked.seeds[place] if asked.temperature else None,
        stop_token_ids=list(asked.ends),
        logprobs=0,  # of the token that was drawn, and of no other
        detokenize=False,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


if __name__ == "__main__":
    LiveServer(Connection(int(sys.argv[1]))).run()
