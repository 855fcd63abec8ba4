"""The process that has vLLM, started by the one that trains: `python -m steerboard_workers.engines.live.serve FD`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.engine import VllmOptions
from steerboard_workers.engines.live.messages import Done, Draw, Drawn, LiveCommand, Start, Update
from steerboard_workers.engines.vllm.host import NEVER, VllmHost
from steerboard_workers.engines.vllm.process import VllmServer
from steerboard_workers.engines.vllm.watchdog import EngineFailed

# vLLM wants the seed of a request to stay a signed 64-bit integer, and not negative.
_SEED_BITS = (1 << 63) - 1


class LiveServer(VllmServer):
    routes = False

    def answers(self, asked: LiveCommand) -> Iterator[Done | Drawn]:
        if isinstance(asked, Start):
            self.host = VllmHost(
                Path(asked.folder),
                task="generate",
                dtype=asked.dtype,
                window=asked.window,
                sequences=asked.sequences,
                options=VllmOptions(**asked.options),
                device=asked.device,
                give_up=self.give_up,
                live=True,
                routes=asked.routes,
            )
            self.routes = asked.routes
            yield Done()
            return
        assert self.host is not None
        if isinstance(asked, Update):
            self.host.take_weights(asked.layout)
            yield Done()
        else:
            yield self._draw(self.host, asked)

    def _draw(self, host: VllmHost, asked: Draw) -> Drawn:
        for place, prompt in enumerate(asked.prompts):
            host.add(str(place), prompt, _params(asked, place))
        answers: dict[int, tuple[list[int], list[float]]] = {}
        routes: dict[int, NDArray[np.uint8 | np.int16]] = {}
        for output in host.outputs():
            (answer,) = output.outputs
            ids = list(answer.token_ids)
            of_tokens = [step[token].logprob for step, token in zip(answer.logprobs, ids, strict=True)]
            answers[int(output.request_id)] = (ids, of_tokens)
            if self.routes:
                place = int(output.request_id)
                routes[place] = _routes_of(answer, len(asked.prompts[place]) + len(ids) - 1)
        host.rest()
        if len(answers) < len(asked.prompts):
            raise EngineFailed(
                f"{len(asked.prompts) - len(answers)} answers never arrived", hint="The run's log has vLLM's output."
            )
        ordered = [answers[place] for place in range(len(asked.prompts))]
        return Drawn(
            [ids for ids, _ in ordered],
            [log_probs for _, log_probs in ordered],
            [routes[place] for place in range(len(asked.prompts))] if self.routes else (),
        )


def _routes_of(answer: Any, tokens: int) -> NDArray[np.uint8 | np.int16]:
    """(tokens, layers, k). vLLM's are as narrow as the number of experts allows, and torch knows no uint16."""
    routes = answer.routed_experts
    if routes is None or len(routes) != tokens:
        had = "none" if routes is None else f"{len(routes)}"
        raise EngineFailed(
            f"of {tokens} tokens of a prompt and its answer, {had} came with the experts that computed them",
            hint="Leave router_replay out, and report it with the model's architecture.",
        )
    return np.array(routes, dtype=np.uint8 if routes.dtype == np.uint8 else np.int16)


def _params(asked: Draw, place: int) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(
        temperature=asked.temperature,
        max_tokens=asked.limits[place],
        seed=asked.seeds[place] & _SEED_BITS if asked.temperature else None,
        stop_token_ids=list(asked.ends),
        logit_bias=dict.fromkeys(asked.silent, NEVER) or None,
        logprobs=0,  # of the token that was drawn, and of no other
        detokenize=False,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


if __name__ == "__main__":
    LiveServer(Connection(int(sys.argv[1]))).run()
