"""Text generation by vLLM, inside this process: token ids in, token ids out, texts by our own renderer.

How it departs from the transformers engine: equal prompts begin only once in the cache, whichever request they are
of, and a draw is vLLM's own, from a generator seeded for each answer; that of a guided answer is ours, as in the
transformers engine. At temperature 0 both give the same tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from steerboard_contracts.decoding import Decoding
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.engines.answers import Answer, TokenisedRequest, Writer, asked
from steerboard_workers.engines.protocol import Completion, Delta, Request
from steerboard_workers.engines.sampling import stream_key
from steerboard_workers.engines.vllm.guidance.pairs import AGAINST, GUIDANCE, KEY, SILENT
from steerboard_workers.engines.vllm.host import NEVER, VllmHost
from steerboard_workers.engines.vllm.watchdog import EngineFailed

# vLLM adds `n` to the seed of a request, and wants it to stay a signed 64-bit integer.
_SEED_BITS = (1 << 62) - 1


class VllmEngine:
    """`host` runs a causal LM, and takes pairs of requests if it is to guide; answers end on `stop_ids`."""

    def __init__(self, host: VllmHost, renderer: Renderer, stop_ids: frozenset[int]) -> None:
        self._host = host
        self._renderer = renderer
        self.stop_ids = stop_ids
        self._silent = renderer.silent_ids

    def generate(
        self,
        requests: Sequence[Request],
        decoding: Decoding,
        seed: int,
        on_delta: Callable[[Delta], None] | None = None,
    ) -> Iterator[Completion]:
        """Completions as they end. Prompts that leave no room are cut from the left.

        Raises `BadInput` (`too_many_new_tokens`), `EngineFailed`.
        """
        return self.write(asked(self._renderer, requests, decoding), decoding, seed, on_delta)

    def write(
        self,
        prompts: Iterable[TokenisedRequest],
        decoding: Decoding,
        seed: int,
        on_delta: Callable[[Delta], None] | None = None,
    ) -> Iterator[Completion]:
        """Writes answers to prompts that are token ids already. Raises `EngineFailed`."""
        writer = Writer(self._renderer, self.stop_ids, decoding.stop, on_delta)
        waiting: dict[str, dict[int, Answer]] = {}
        ids: dict[str, str] = {}
        for tokenised in prompts:
            for name, numbers in _parts(tokenised, decoding):
                params = self._params(tokenised, decoding, seed, numbers)
                waiting[name] = {
                    i: Answer(tokenised.request.row, n, tokenised.limit, prompt_tokens=len(tokenised.prompt))
                    for i, n in enumerate(numbers)
                }
                ids[name] = self._host.add(name, tokenised.prompt, params)
        for output in self._host.outputs():
            answers = waiting[output.request_id]
            for part in output.outputs:
                answer = answers.get(part.index)
                if answer is None:
                    continue
                completion = writer.take(answer, part.token_ids)
                if completion is None:
                    continue
                del answers[part.index]
                if not answers and not output.finished:
                    # It ended on a stop string, of which vLLM knows nothing.
                    self._host.abort([ids[output.request_id]])
                yield completion
        lost = sum(map(len, waiting.values()))
        if lost:
            raise EngineFailed(f"{lost} answers never arrived", hint="The run's log has vLLM's output.")

    def _params(self, tokenised: TokenisedRequest, decoding: Decoding, seed: int, numbers: Sequence[int]) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        key = stream_key(seed, tokenised.request.row, 0) & _SEED_BITS
        guidance = None
        if tokenised.against is not None:
            own = stream_key(seed, tokenised.request.row, numbers[0])
            guidance = {GUIDANCE: decoding.guidance, AGAINST: tokenised.against, KEY: own, SILENT: self._silent}
        return SamplingParams(
            extra_args=guidance,
            n=len(numbers),
            temperature=decoding.temperature,
            top_p=decoding.top_p,
            top_k=decoding.top_k or -1,
            max_tokens=tokenised.limit,
            seed=key + numbers[0] if decoding.temperature else None,
            stop_token_ids=sorted(self.stop_ids),
            logit_bias=None if guidance else dict.fromkeys(self._silent, NEVER) or None,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
        )


def _parts(tokenised: TokenisedRequest, decoding: Decoding) -> list[tuple[str, list[int]]]:
    """(name, numbers of its answers) of what vLLM is asked. One request for all answers, but one for each where stop
    strings may end them, since only whole requests can be ended early, where they are greedy, of which vLLM takes
    only one, and where they are guided, each with a random stream of its own; the seeds are the same."""
    row, numbers = tokenised.request.row, list(range(decoding.n))
    if decoding.stop or decoding.temperature == 0 or decoding.guided:
        return [(f"{row}-{n}", [n]) for n in numbers]
    return [(str(row), numbers)]
