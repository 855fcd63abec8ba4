"""vLLM for the harness: `python -m steerboard_workers.stages.harness.vllm_server FD`, by the Python that has vLLM.

Every answer is sent as soon as vLLM has it, so that the harness can keep it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from steerboard_contracts.decoding import Decoding
from steerboard_contracts.engine import VllmOptions
from steerboard_workers.engines.answers import TokenisedRequest
from steerboard_workers.engines.protocol import Request
from steerboard_workers.engines.vllm.engine import VllmEngine
from steerboard_workers.engines.vllm.process import VllmServer
from steerboard_workers.engines.vllm.watchdog import EngineFailed
from steerboard_workers.stages.harness.vllm_messages import (
    Choose,
    Chosen,
    Done,
    HarnessCommand,
    Measure,
    Measured,
    Open,
    Write,
    Written,
)
from steerboard_workers.stages.models.model_io import load_tokenizer, read_info, renderer_of
from steerboard_workers.stages.models.open_models import own_ends, vllm_host


class HarnessServer(VllmServer):
    _engine: VllmEngine

    def answers(self, asked: HarnessCommand) -> Iterator[Written | Measured | Chosen | Done]:
        if isinstance(asked, Open):
            self._open(asked)
        elif isinstance(asked, Write):
            yield from self._write(asked)
        elif isinstance(asked, Measure):
            yield from self._measure(asked)
        else:
            yield from self._choose(asked)
        yield Done()

    def _open(self, asked: Open) -> None:
        folder = Path(asked.folder)
        tokenizer, info = load_tokenizer(folder), read_info(folder)
        self.host = vllm_host(
            folder,
            info,
            task="generate",
            precision=asked.precision,
            window=asked.window,
            sequences=asked.sequences,
            options=VllmOptions(**asked.options),
            device=asked.device,
            give_up=self.give_up,
        )
        # What ends an answer of the harness over transformers: the model's own ends, and the tokenizer's.
        ends = own_ends(folder) or []
        stop_ids = {tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])}
        self._engine = VllmEngine(self.host, renderer_of(tokenizer, info, asked.window), frozenset(stop_ids))

    def _write(self, asked: Write) -> Iterator[Written]:
        stop = [text for text in asked.stop if text]
        decoding = Decoding(temperature=asked.temperature, top_p=asked.top_p, top_k=asked.top_k, stop=stop)
        places = {seed: place for place, seed in enumerate(asked.seeds)}
        prompts = [
            TokenisedRequest(Request(seed, ()), list(prompt), limit)
            for prompt, limit, seed in zip(asked.prompts, asked.limits, asked.seeds, strict=True)
        ]
        for completion in self._engine.write(prompts, decoding, 0):
            # The harness decides by its tokenizer whether the end is a part of the text.
            end = [] if completion.end is None else [completion.end]
            yield Written(places[completion.row], [*completion.token_ids, *end])

    def _measure(self, asked: Measure) -> Iterator[Measured]:
        params = _params(prompt_logprobs=1)  # of each token, and of the likeliest
        for place, output in self._outputs(asked.sequences, [params] * len(asked.sequences)):
            yield _measured(place, asked.sequences[place], asked.starts[place], output.prompt_logprobs)

    def _choose(self, asked: Choose) -> Iterator[Chosen]:
        for place, output in self._outputs(asked.prompts, [_params(logprob_token_ids=[*ids]) for ids in asked.tokens]):
            (answer,) = output.outputs
            (candidates,) = answer.logprobs
            yield Chosen(place, [candidates[token].logprob for token in asked.tokens[place]], answer.token_ids[0])

    def _outputs(self, prompts: Sequence[Sequence[int]], params: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """(place, output) of each prompt, in any order."""
        assert self.host is not None
        for place, (prompt, its) in enumerate(zip(prompts, params, strict=True)):
            self.host.add(str(place), prompt, its)
        left = len(prompts)
        for output in self.host.outputs():
            left -= 1
            yield int(output.request_id), output
        if left:
            raise EngineFailed(f"{left} log-probs never arrived", hint="The run's log has vLLM's output.")


def _params(**options: Any) -> Any:
    """The parameters of a prompt whose log-probs are asked for: vLLM insists on writing a token after it."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(
        temperature=0.0, max_tokens=1, detokenize=False, output_kind=RequestOutputKind.FINAL_ONLY, **options
    )


def _measured(place: int, sequence: Any, start: int, by_token: Any) -> Measured:
    """`by_token`: vLLM's, of each token of the sequence those tokens that were asked for."""
    total, greedy = 0.0, True
    for token, candidates in zip(sequence[start:], by_token[start:], strict=True):
        log_prob = candidates[token].logprob
        total += log_prob
        greedy = greedy and log_prob >= max(other.logprob for other in candidates.values())
    return Measured(place, total, greedy)


if __name__ == "__main__":
    HarnessServer(Connection(int(sys.argv[1]))).run()
