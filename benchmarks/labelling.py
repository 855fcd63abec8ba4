"""Labelling speed where answers share a long prompt, against a padded transformers loop: `make bench-labelling`.

A 6-layer, hidden-256 Llama with a vocabulary of 8,192 and a reward model of it, in float32 on 2 threads, read made-up
prompts of about 320 tokens with answers of about 40: `pairs` has two to a prompt, `best_of_8` eight. What is measured,
as sequences/s:

- `rewards`: the engine of the score stage, given the sequences and where their prompts end;
- `log_probs`: sums over answers of log pi, by the passes that read a reference: the LM head runs on answers only.

Both compute a prompt once for all answers to it.

The other side is a loop over batches that are sorted by length and padded on the right, through transformers' own
forward, with all logits for the log-probs; it is given the fastest of four batch sizes, tried out first. Both have the
same ids, threads and weights and take turns, `--rounds` times in all. `difference` is the largest one between their
outputs, divided by the output where this is above 1; where it exceeds 1e-5 there is an error instead of a result.

Prints JSON: {pairs, best_of_8} x {rewards, log_probs} -> `ours`, `padded`, their `ratio`, `difference`
and `padded_batch`; and the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from contests.training_setup import made_up_answers, write_models
from harness.machine import machine
from harness.measure import say

THREADS = 2
WINDOW = 512
PROMPT_WORDS, ANSWER_WORDS = (240, 400), (16, 64)
ANSWERS = {"pairs": 2, "best_of_8": 8}
BATCHES = (4, 8, 16, 32)
AGREE = 1e-5

Way = Callable[[], list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=96, help="answers of each kind of data")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    # DeepSpeed, where it is installed, logs to standard output, which is for the one document.
    with contextlib.redirect_stdout(sys.stderr):
        results = run(given.sequences, given.rounds)
    print(json.dumps(results, indent=2))


def run(sequences: int, rounds: int) -> dict[str, Any]:
    import torch

    torch.set_num_threads(THREADS)
    results: dict[str, Any] = {"machine": machine()}
    drawn = {
        name: list(made_up_answers(max(1, sequences // answers), answers, PROMPT_WORDS, ANSWER_WORDS))
        for name, answers in ANSWERS.items()
    }
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        texts = [{"prompt": p, "chosen": a[0], "rejected": a[1]} for groups in drawn.values() for p, a in groups]
        write_models(folder, texts, WINDOW)
        models = Models(folder)
        for kind, groups in drawn.items():
            examples = models.examples(groups)
            results[kind] = {
                task: contest(ours, padded, sum(len(example.responses) for example in examples), rounds)
                for task, (ours, padded) in models.tasks(examples).items()
            }
            say(f"{kind}: {results[kind]}")
    return results


def contest(ours: Way, padded: Callable[[int], Way], sequences: int, rounds: int) -> dict[str, Any]:
    """Sequences/s of both, medians over rounds. `padded`: the padded loop with batches of so many sequences."""
    expected = ours()  # warms up, too
    tried = {batch: _seconds(padded(batch))[0] for batch in BATCHES}
    batch = min(tried, key=lambda size: tried[size])
    times: dict[str, list[float]] = {"ours": [], "padded": []}
    for number in range(rounds):
        ways = {"ours": ours, "padded": padded(batch)}
        for name in ways if number % 2 == 0 else reversed(ways):
            seconds, values = _seconds(ways[name])
            times[name].append(seconds)
            off = max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(values, expected, strict=True))
            if not off <= AGREE:
                return {"error": f"{name} differs by {off:.2e}"}
            if name == "padded":
                difference = off
    rates = {name: sequences / statistics.median(all_of) for name, all_of in times.items()}
    return {
        **{name: round(rate, 1) for name, rate in rates.items()},
        "ratio": round(rates["ours"] / rates["padded"], 3),
        "difference": difference,
        "padded_batch": batch,
    }


def _seconds(way: Way) -> tuple[float, list[float]]:
    began = time.perf_counter()
    values = way()
    return time.perf_counter() - began, values


class Models:
    """Ours and theirs of the two models, each loaded for itself: ours choose another attention."""

    def __init__(self, folder: Path) -> None:
        from steerboard_workers.stages.models.model_io import load_policy, load_reward_model

        self._folder = folder
        self._policy = load_policy(folder / "sft", "fp32", "cpu")
        self._reward = load_reward_model(folder / "reward_model", "fp32", "cpu")
        self._pad = int(self._policy.tokenizer.pad_token_id)

    def examples(self, groups: Sequence[tuple[Any, list[str]]]) -> list[Any]:
        """Prompts with their answers, as tokens."""
        from steerboard_workers.alignment.examples import Example

        rendered = self._policy.renderer.render_groups([p for p, _ in groups], [answers for _, answers in groups])
        return [Example.of(number, group) for number, group in enumerate(rendered) if group is not None]

    def tasks(self, examples: list[Any]) -> dict[str, tuple[Way, Callable[[int], Way]]]:
        from steerboard_workers.alignment.rendering.render import Rendered
        from steerboard_workers.engines.rewards import TransformersRewards

        whole = [[*example.prompt.tolist(), *answer.tolist()] for example in examples for answer in example.responses]
        starts = [len(example.prompt) for example in examples for _ in example.responses]
        engine = TransformersRewards(self._reward.model, self._reward.renderer, self._reward.device)
        rendered = [Rendered(ids, start, [], False) for ids, start in zip(whole, starts, strict=True)]
        padded = PaddedLoop(self._policy.model, self._reward.model, whole, starts, self._pad)
        return {
            "rewards": (lambda: _placed(engine.score(rendered, 1 << 14), len(rendered)), padded.rewards),
            "log_probs": (self._passes(examples), padded.log_probs),
        }

    def _passes(self, examples: list[Any]) -> Way:
        """One reading of all examples, as training reads a reference."""
        import torch

        from steerboard_contracts.stage.spec import StageSpec
        from steerboard_workers.stages.distributed.choice import strategy_of
        from steerboard_workers.stages.runtime import EventWriter, Stage
        from steerboard_workers.stages.training.passes import ForwardPasses
        from steerboard_workers.stages.training.setup import batcher_of, open_model

        settings = {"run": "train", "method": "dpo", "precision": "fp32", "max_length": WINDOW}
        spec = StageSpec(run_id="bench", name="sft", config=settings, inputs={})
        with open("/dev/null", "w") as nowhere:
            stage = Stage(self._folder, spec, EventWriter(nowhere.fileno()))
            sharing = strategy_of(spec.config, "cpu")
            module = open_model(self._folder / "sft", spec.config).module()
            sharing.share(module)
            batcher = batcher_of(stage, spec.config, module, examples, self._pad, torch.device("cpu"), share=True)
        passes = ForwardPasses(sharing)
        passes.read_from(batcher)
        return lambda: [float(value) for values in passes.per_sequence(examples) for value in values]


class PaddedLoop:
    """Plain transformers: the longest sequences first, batches padded on the right."""

    def __init__(self, policy: Any, reward: Any, sequences: list[list[int]], starts: list[int], pad: int) -> None:
        self._policy, self._reward = policy, reward
        self._sequences, self._starts, self._pad = sequences, starts, pad

    def rewards(self, batch: int) -> Way:
        def once() -> list[float]:
            results = (
                (places, self._reward(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, 0].tolist())
                for places, ids, mask in self._batches(batch)
            )
            return _placed(results, len(self._sequences))

        return _without_gradient(once)

    def log_probs(self, batch: int) -> Way:
        def once() -> list[float]:
            return _placed(
                ((places, self._sums(places, ids, mask)) for places, ids, mask in self._batches(batch)),
                len(self._sequences),
            )

        return _without_gradient(once)

    def _sums(self, places: list[int], ids: Any, mask: Any) -> list[float]:
        import torch

        logits = self._policy(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, :-1]
        log_probs = logits.gather(2, ids[:, 1:, None])[..., 0] - logits.logsumexp(-1)
        learned = mask[:, 1:].bool()
        for row, place in enumerate(places):
            learned[row, : self._starts[place] - 1] = False
        sums: list[float] = torch.where(learned, log_probs, 0.0).sum(-1).tolist()
        return sums

    def _batches(self, batch: int) -> Iterator[tuple[list[int], Any, Any]]:
        import torch

        order = sorted(range(len(self._sequences)), key=lambda place: -len(self._sequences[place]))
        for at in range(0, len(order), batch):
            places = order[at : at + batch]
            width = len(self._sequences[places[0]])
            lengths = torch.tensor([len(self._sequences[place]) for place in places])
            ids = [[*self._sequences[p], *[self._pad] * (width - len(self._sequences[p]))] for p in places]
            yield places, torch.tensor(ids), (torch.arange(width)[None] < lengths[:, None]).long()


def _without_gradient(way: Way) -> Way:
    import torch

    return torch.inference_mode()(way)


def _placed(results: Iterator[tuple[list[int], list[float]]], total: int) -> list[float]:
    values = [0.0] * total
    for places, some in results:
        for place, value in zip(places, some, strict=True):
            values[place] = value
    return values


if __name__ == "__main__":
    main()
