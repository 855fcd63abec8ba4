"""How guided and plain requests fare together in narrow engines, as JSON: `python vllm_pairs_probe.py FOLDER OUT`, by
the Python that has vLLM. FOLDER holds a model `policy`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine_prompts import TEXTS

from steerboard_contracts.decoding import Decoding
from steerboard_contracts.engine import VllmOptions
from steerboard_contracts.errors import SteerboardError
from steerboard_workers.engines.answers import TokenisedRequest, asked, end_ids
from steerboard_workers.engines.protocol import Request
from steerboard_workers.engines.vllm import host as hosts
from steerboard_workers.engines.vllm.engine import VllmEngine
from steerboard_workers.stages.models.model_io import load_tokenizer, read_info, renderer_of
from steerboard_workers.stages.models.open_models import own_ends, vllm_host

GREEDY = Decoding(max_new_tokens=40, guidance=3.0)
SAMPLED = Decoding(temperature=0.9, n=3, max_new_tokens=40, guidance=3.0)
BLOCK = 32
# The longest pair and little else has room in 14 blocks, of which one is vLLM's own.
ENGINES: dict[str, dict[str, Any]] = {
    "parts": {"max_num_batched_tokens": 24, "max_num_seqs": 16},
    "tight": {"num_gpu_blocks_override": 14, "max_num_seqs": 8, "max_num_batched_tokens": 48},
    "uncached": {"enable_prefix_caching": False, "max_num_seqs": 3, "max_num_batched_tokens": 40},
}


class Probe:
    def __init__(self, folder: Path, more: dict[str, Any]) -> None:
        hosts._WHOLE_PROMPTS.clear()
        info, tokenizer = read_info(folder), load_tokenizer(folder)
        self.renderer = renderer_of(tokenizer, info)
        given = dict(hosts._GUIDED)
        hosts._GUIDED.update({"block_size": BLOCK, **more})
        try:
            self.host = vllm_host(
                folder,
                info,
                task="generate",
                precision="fp32",
                window=160,
                sequences=16,
                options=VllmOptions(eager=True),
                device="cpu",
                give_up=lambda error: None,
                guided=True,
            )
        finally:
            hosts._GUIDED.clear()
            hosts._GUIDED.update(given)
        self.engine = VllmEngine(self.host, self.renderer, end_ids(self.renderer, own_ends(folder)))
        self.scheduler = self.host._engine.engine_core.engine_core.scheduler
        self.preempted = {"guided": 0, "plain": 0}
        self.cached = 0
        preempt = self.scheduler._preempt_request

        def counted(request: Any, *args: Any, **options: Any) -> None:
            self.preempted["guided" if request.request_id in self.scheduler._pairs else "plain"] += 1
            preempt(request, *args, **options)

        self.scheduler._preempt_request = counted

    def asked(self, decoding: Decoding, *, every: int = 1) -> list[TokenisedRequest]:
        """The prompts; each `every`th is guided."""
        requests = [Request(row, [{"role": "user", "content": text}], "5.00") for row, text in enumerate(TEXTS)]
        tokenised = asked(self.renderer, requests, decoding)
        return [
            tokenised
            if tokenised.request.row % every == 0
            else TokenisedRequest(tokenised.request, tokenised.prompt, tokenised.limit, None)
            for tokenised in tokenised
        ]

    def answers(self, asked: list[TokenisedRequest], decoding: Decoding) -> list[Any]:
        return sorted([c.row, c.n, c.token_ids] for c in self.engine.write(asked, decoding, 7))

    def left(self) -> list[int]:
        """What the scheduler holds of requests that have ended: nothing."""
        scheduler = self.scheduler
        return [
            len(scheduler.requests),
            len(scheduler._pairs),
            len(scheduler._admitted),
            len(scheduler.running),
            len(scheduler.waiting),
        ]


@contextmanager
def opened(folder: Path, more: dict[str, Any]) -> Iterator[Probe]:
    probe = Probe(folder, more)
    yield probe
    probe.host.close()


def aborted(probe: Probe) -> list[Any]:
    """Others' answers when guided requests are ended early."""
    for number, tokenised in enumerate(probe.asked(GREEDY)[:8]):
        params = probe.engine._params(tokenised, GREEDY, 7, [0])
        name = probe.host.add(f"gone-{number}", tokenised.prompt, params)
        if number % 2:
            probe.host.abort([name])
    outputs = probe.host.outputs()
    for _ in range(3):
        next(outputs)
    outputs.close()
    probe.host.abort([request for request in list(probe.scheduler.requests) if "gone" in request])
    while probe.host._engine.has_unfinished_requests():
        probe.host._engine.step()
    return probe.left()


def refusal(folder: Path, more: dict[str, Any]) -> str:
    try:
        Probe(folder, more)
    except SteerboardError as error:
        return error.detail
    return "nothing"


def main(folder: Path, out: Path) -> None:
    folder = folder / "policy"
    document: dict[str, Any] = {}
    for name, more in ENGINES.items():
        with opened(folder, more) as probe:
            document[name] = {
                "greedy": probe.answers(probe.asked(GREEDY), GREEDY),
                "sampled": probe.answers(probe.asked(SAMPLED), SAMPLED),
                "mixed": probe.answers(probe.asked(GREEDY, every=3), GREEDY),
                "aborted": aborted(probe),
                "greedy_again": probe.answers(probe.asked(GREEDY), GREEDY),
                "preempted": probe.preempted,
                "left": probe.left(),
                "fill_blocks": sum(
                    len(ids) % BLOCK == 1
                    for tokenised in probe.asked(GREEDY)
                    for ids in (tokenised.prompt, tokenised.against or [])
                ),
            }
    document["tight"]["too_small"] = refusal(folder, {"num_gpu_blocks_override": 12})
    out.write_text(json.dumps(document))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
