"""Generation speed against transformers' own generate, as ratios: `python benchmarks/generation.py`.

A 6-layer, hidden-256 Llama with a vocabulary of 8,192 answers synthetic prompts on 2 threads, at most 128 new tokens
each, in batches of 32. Both take turns, batch by batch, so that whatever else the machine does meets them alike. The
weights are random and large, and some tokens end an answer, so that lengths vary as with a trained model.

Prints JSON: for `greedy` and `sampled`, tokens/s of `ours` and `transformers`, their ratio, and for greedy whether all
answers are equal.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import torch

from steerboard_contracts.decoding import Decoding
from steerboard_contracts.run_kinds.base import BaseModelConfig
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.engines.protocol import Request
from steerboard_workers.engines.transformers_engine import TransformersEngine
from steerboard_workers.stages.base import random_llama, train_tokenizer
from steerboard_workers.synthetic.topics import QUESTIONS, SITUATIONS, TOPICS, prompt_text

THREADS = 2
PROMPTS = 128
BATCH = 32
NEW_TOKENS = 128
VOCABULARY = 8192


def main() -> None:
    given = _arguments()
    torch.set_num_threads(THREADS)
    every = [prompt_text(t, s, q) for t in TOPICS for s in SITUATIONS for q in QUESTIONS]
    prompts = every[:: max(1, len(every) // given.prompts)][: given.prompts]
    tokenizer = train_tokenizer([f"User: {p} Assistant:" for p in prompts], VOCABULARY, 512)
    model = _model(tokenizer)
    renderer = Renderer(tokenizer, "plain", 512)
    requests = [Request(i, [{"role": "user", "content": p}]) for i, p in enumerate(prompts)]
    requests.sort(key=lambda r: len(renderer.prompt_ids(r.prompt)))
    results = {
        name: _compare(model, renderer, requests, Decoding(temperature=temperature, max_new_tokens=NEW_TOKENS))
        for name, temperature in (("greedy", 0.0), ("sampled", 1.0))
    }
    del results["sampled"]["equal"]
    print(json.dumps(results, indent=2))


def _model(tokenizer: Any) -> Any:
    config = BaseModelConfig(source="random:tiny-llama", hidden=256, layers=6, heads=8, max_length=512)
    model = random_llama(config, tokenizer)
    model.resize_token_embeddings(VOCABULARY, mean_resizing=False)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_(std=0.16)
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, *range(300, VOCABULARY, 80)]
    return model.eval()


def _compare(model: Any, renderer: Renderer, requests: list[Request], decoding: Decoding) -> dict[str, Any]:
    engine = TransformersEngine(model, renderer, torch.device("cpu"), BATCH)
    ours = other = 0.0
    our_tokens = their_tokens = 0
    equal = True
    _reference(model, renderer, requests[:2], decoding)  # warm-up
    for start in range(0, len(requests), BATCH):
        batch = requests[start : start + BATCH]
        began = time.perf_counter()
        answers = {c.row: c for c in engine.generate(batch, decoding, seed=0)}
        ours += time.perf_counter() - began
        began = time.perf_counter()
        rows = _reference(model, renderer, batch, decoding)
        other += time.perf_counter() - began
        our_tokens += sum(c.tokens + c.finished for c in answers.values())
        their_tokens += sum(len(row) for row in rows)
        equal &= all(
            answers[r.row].token_ids == row[: answers[r.row].tokens] for r, row in zip(batch, rows, strict=True)
        )
    speed, reference = our_tokens / ours, their_tokens / other
    return {"ours": speed, "transformers": reference, "ratio": speed / reference, "equal": equal}


def _reference(model: Any, renderer: Renderer, batch: list[Request], decoding: Decoding) -> list[list[int]]:
    """New tokens of each row up to and with its end token, by transformers."""
    pad = renderer.tokenizer.pad_token_id
    prompts = [renderer.prompt_ids(r.prompt) for r in batch]
    longest = max(len(p) for p in prompts)
    ids = torch.tensor([[pad] * (longest - len(p)) + p for p in prompts])
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
    options: dict[str, Any] = {"do_sample": True, "top_k": 0} if decoding.temperature else {"do_sample": False}
    out = model.generate(ids, attention_mask=mask, max_new_tokens=NEW_TOKENS, pad_token_id=pad, **options)
    ends = set(model.generation_config.eos_token_id)
    rows = []
    for row in out[:, longest:].tolist():
        end = next((i + 1 for i, token in enumerate(row) if token in ends), len(row))
        rows.append(row[:end])
    return rows


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=PROMPTS)
    given = parser.parse_args()
    if given.prompts < 1:
        parser.error("--prompts: 1 at least")
    return given


if __name__ == "__main__":
    main()
