"""Training and generation in bf16 against TRL and transformers on one device: `make bench-gpu`.

A Llama with random weights (`1b`: 1.2 billion parameters; `toy` where there is no GPU) learns made-up dialogues by SFT,
as a reward model and as a Decision Transformer, and answers prompts. Every contestant is a process of its own, given
the same rows and the same number of sequences an optimiser step; they run one after the other, `--rounds` times, the
second time in the opposite order. The first steps are not timed.

Prints JSON: for each task tokens/s (padding not counted), model FLOP utilisation (6 FLOP a parameter and token for
training, 2 for generation, over the device's dense bf16 peak; null where that is not known) and peak memory of `ours`
and of `theirs`, with their ratio. `--results` writes the table into benchmarks/RESULTS.md.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from machine import processor

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
TASKS = ("sft", "reward_model", "decision_transformer", "generate")
SIZES: dict[str, dict[str, int]] = {
    "toy": {"hidden": 64, "layers": 2, "heads": 2, "max_length": 256, "rows": 96, "sequences": 8, "words": 60},
    "1b": {"hidden": 2048, "layers": 24, "heads": 16, "max_length": 2048, "rows": 1024, "sequences": 32, "words": 700},
}
STEPS, WARM_STEPS = 8, 3
PROMPTS, NEW_TOKENS = 64, 128
# Dense bf16 peaks of the makers' data sheets, FLOP/s.
PEAKS = {"A100": 312e12, "H100": 989e12, "H200": 989e12, "B200": 2250e12}
_TEXT = "bread flour water salt yeast oven cake sugar butter eggs sky blue light short waves scatter bake mix"
WORDS = tuple(_TEXT.split())


def main() -> None:
    given = _arguments()
    if given.contestant:
        print(json.dumps(_contest(given.contestant, given.task, Path(given.folder), given.size)))
        return
    found = run(given.size, given.rounds)
    print(json.dumps(found, indent=2))
    if given.results:
        _write_results(found)


def run(size: str, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        prepare(folder, size)
        found: dict[str, Any] = {"size": size, **_machine()}
        for task in TASKS:
            measured: dict[str, list[dict[str, Any]]] = {"ours": [], "theirs": []}
            for number in range(rounds):
                for who in ("ours", "theirs") if number % 2 == 0 else ("theirs", "ours"):
                    measured[who].append(_process(who, task, folder, size))
            found[task] = {who: _summary(all_of, task, found["peak_flops"]) for who, all_of in measured.items()}
            found[task]["ratio"] = round(
                found[task]["ours"]["tokens_per_second"] / found[task]["theirs"]["tokens_per_second"], 3
            )
    return found


def _summary(measured: list[dict[str, Any]], task: str, peak: float | None) -> dict[str, Any]:
    rate = statistics.median(one["tokens_per_second"] for one in measured)
    flop = (2 if task == "generate" else 6) * measured[0]["parameters"]
    return {
        "tokens_per_second": round(rate),
        "mfu": round(rate * flop / peak, 4) if peak else None,
        "peak_memory_bytes": max(one["peak_memory_bytes"] for one in measured),
        "all_tokens_per_second": [round(one["tokens_per_second"]) for one in measured],
    }


def _process(who: str, task: str, folder: Path, size: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--contestant", who, "--task", task, "--folder", str(folder), "--size", size]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{who} of {task} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _machine() -> dict[str, Any]:
    import torch

    name = torch.cuda.get_device_name() if torch.cuda.is_available() else processor()
    peak = next((flops for key, flops in PEAKS.items() if key in name), None)
    return {"date": dt.date.today().isoformat(), "device": name, "torch": torch.__version__, "peak_flops": peak}


# -- the rows and the model -----------------------------------------------------------------------------------------


def prepare(folder: Path, size: str) -> None:
    """rows.jsonl (each a labelled sample and a pair in one) and the start model."""
    import torch

    from steerboard_contracts.configs.base import BaseModelConfig
    from steerboard_contracts.models import ModelInfo
    from steerboard_workers.stages.base import random_llama, train_tokenizer
    from steerboard_workers.stages.models.model_io import save_model

    shape = SIZES[size]
    draw = random.Random(0)

    def text(most: int) -> str:
        return " ".join(draw.choice(WORDS) for _ in range(draw.randint(most // 4, most)))

    rows = []
    for row in range(shape["rows"]):
        prompt = [{"role": "user", "content": text(shape["words"] // 3)}]
        sides = {"chosen": text(shape["words"]), "rejected": text(shape["words"])}
        about = {"row": row, "split": "held_out" if row % 16 == 0 else "train", "half": "a", "source": "generated"}
        rows.append({"prompt": prompt, **sides, "response": sides["chosen"], "reward": draw.gauss(0, 1), **about})
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tokenizer = train_tokenizer(
        (f"User: {r['prompt'][0]['content']} Assistant: {r['chosen']}" for r in rows), 512, 4096
    )
    config = BaseModelConfig(
        source="random:tiny-llama", **{k: shape[k] for k in ("hidden", "layers", "heads", "max_length")}
    )
    torch.manual_seed(0)
    model = random_llama(config, tokenizer)
    if size != "toy":
        # As large a vocabulary as real models have: the head is a good part of the work.
        model.resize_token_embeddings(32_768, mean_resizing=False)
    model = model.to(torch.bfloat16)
    info = ModelInfo(
        role="base", architecture=type(model).__name__, parameters=_parameters(model), max_length=shape["max_length"]
    )
    save_model(folder / "model", model, tokenizer, info)


def _parameters(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


# -- contestants ----------------------------------------------------------------------------------------------------


def _contest(who: str, task: str, folder: Path, size: str) -> dict[str, Any]:
    import torch

    sys.stdout.flush()
    out = os.dup(1)
    os.dup2(2, 1)  # the last line of the standard output is the answer
    try:
        if task == "generate":
            rate, parameters = _generation(who, folder)
        else:
            rate, parameters = (_ours if who == "ours" else _trl)(task, folder, size)
    finally:
        os.dup2(out, 1)
    return {"tokens_per_second": rate, "parameters": parameters, "peak_memory_bytes": _peak(torch)}


def _peak(torch: Any) -> int:
    import resource

    if torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _config(task: str, size: str) -> dict[str, Any]:
    shape = SIZES[size]
    return {
        "run": "train",
        "method": task,
        "lr": 1e-5,
        "batch": shape["sequences"] // (2 if task == "reward_model" else 1),
        "epochs": 100,
        "max_steps": STEPS,
        "micro_tokens": 8 * shape["max_length"],
        "precision": "bf16",
        "checkpoint_every": 0,
        "checkpoint_seconds": 0,
        "evaluate_rows": 1,
    }


def _stage(task: str, folder: Path, size: str, kind: type) -> Any:
    from steerboard_contracts.stage.inputs import DatasetInput, ModelInput
    from steerboard_contracts.stage.spec import StageSpec
    from steerboard_workers.stages.runtime import EventWriter

    data = "preferences" if task == "reward_model" else "labelled"
    inputs = {
        "model": ModelInput(name="start", path=str(folder / "model"), content_hash=""),
        "data": DatasetInput(name="rows", path=str(folder / "rows.jsonl"), kind=data, rows=0, content_hash=""),
    }
    spec = StageSpec(run_id="bench", name=task, config=_config(task, size), inputs=inputs)
    return kind(Path(tempfile.mkdtemp(dir=folder)), spec, EventWriter(os.open(os.devnull, os.O_WRONLY)))


def _ours(task: str, folder: Path, size: str) -> tuple[float, int]:
    from steerboard_workers.stages import train
    from steerboard_workers.stages.runtime import Stage

    rates: list[float] = []

    class Timed(Stage):
        def metrics(self, step: int, values: Any) -> None:
            if step > WARM_STEPS:
                rates.append(values["tokens_per_second"])

    train.run(_stage(task, folder, size, Timed))
    return statistics.median(rates), _size_of(folder)


def _size_of(folder: Path) -> int:
    return int(json.loads((folder / "model" / "steerboard.json").read_text())["parameters"])


def _trl(task: str, folder: Path, size: str) -> tuple[float, int]:
    """TRL on the ids that our renderer makes of the same rows, without gradient checkpointing, grouped by length."""
    import torch
    from transformers import TrainerCallback
    from trl import RewardConfig, RewardTrainer, SFTConfig, SFTTrainer

    from datasets import Dataset
    from steerboard_workers.alignment.methods import training_of
    from steerboard_workers.stages.runtime import Stage
    from steerboard_workers.stages.training.data import load_data
    from steerboard_workers.stages.training.setup import open_model

    stage = _stage(task, folder, size, Stage)
    config = stage.spec.config
    start = open_model(folder / "model", config)
    examples = load_data(stage, training_of(config), start.renderer).train
    rows = 8 if task != "reward_model" else 4
    arguments: dict[str, Any] = {
        "output_dir": str(folder / "trl"),
        "per_device_train_batch_size": rows,
        "gradient_accumulation_steps": config.batch // rows,
        "gradient_checkpointing": False,
        "max_steps": STEPS,
        "learning_rate": config.lr,
        "bf16": True,
        "use_cpu": not torch.cuda.is_available(),
        "max_length": SIZES[size]["max_length"],
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
    }
    rates: list[float] = []

    class Timed(TrainerCallback):
        began = seen = 0.0

        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.began = time.perf_counter()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            tokens, self.seen = trainer._total_train_tokens - self.seen, trainer._total_train_tokens
            if state.global_step > WARM_STEPS:
                rates.append(tokens / (time.perf_counter() - self.began))

    if task == "reward_model":
        pairs = [[[*e.prompt.tolist(), *side.tolist()] for side in e.responses] for e in examples]
        data = Dataset.from_dict({"chosen_ids": [p[0] for p in pairs], "rejected_ids": [p[1] for p in pairs]})
        kind, settings = RewardTrainer, RewardConfig(**arguments)
    else:
        ids = [[*e.prompt.tolist(), *e.responses[0].tolist()] for e in examples]
        masks = [[0] * len(e.prompt) + [1] * len(e.responses[0]) for e in examples]
        data = Dataset.from_dict({"input_ids": ids, "completion_mask": masks})
        kind, settings = (
            SFTTrainer,
            SFTConfig(**arguments, completion_only_loss=True, train_sampling_strategy="group_by_length"),
        )
    trainer = kind(
        model=start.model, args=settings, train_dataset=data, processing_class=start.tokenizer, callbacks=[Timed()]
    )
    trainer.train()
    return statistics.median(rates), _size_of(folder)


def _generation(who: str, folder: Path) -> tuple[float, int]:
    """Greedy, `NEW_TOKENS` each: random weights hardly ever end by themselves, and the end token is ruled out."""
    import torch

    from steerboard_contracts.decoding import Decoding
    from steerboard_workers.engines.protocol import Request
    from steerboard_workers.engines.transformers_engine import TransformersEngine
    from steerboard_workers.stages.models.model_io import load_policy

    policy = load_policy(folder / "model", "bf16")
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()][:PROMPTS]
    policy.model.generation_config.eos_token_id = None
    engine = TransformersEngine(policy.model, policy.renderer, policy.device, PROMPTS)
    engine.stop_ids = frozenset()
    requests = [Request(at, row["prompt"]) for at, row in enumerate(rows)]
    decoding = Decoding(max_new_tokens=NEW_TOKENS)
    prompts = policy.renderer.prompts_ids([r.prompt for r in requests], [None] * len(requests), room=NEW_TOKENS)
    width, pad = max(map(len, prompts)), int(policy.tokenizer.pad_token_id)
    ids = torch.tensor([[pad] * (width - len(p)) + p for p in prompts], device=policy.device)
    mask = (torch.arange(width)[None] >= torch.tensor([[width - len(p)] for p in prompts])).long().to(policy.device)

    def once() -> int:
        if who == "ours":
            return sum(c.tokens for c in engine.generate(requests, decoding, 0))
        with torch.inference_mode():
            out = policy.model.generate(
                ids,
                attention_mask=mask,
                max_new_tokens=NEW_TOKENS,
                do_sample=False,
                pad_token_id=pad,
                eos_token_id=None,
            )
        return (out.shape[1] - width) * len(prompts)

    once()
    rates = []
    for _ in range(3):
        began = time.perf_counter()
        tokens = once()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        rates.append(tokens / (time.perf_counter() - began))
    return statistics.median(rates), _size_of(folder)


# -- the results' page ----------------------------------------------------------------------------------------------


def _write_results(found: dict[str, Any]) -> None:
    """Put the table in the place of the last one."""
    head, begin, rest = RESULTS.read_text().partition("<!-- gpu -->\n")
    _, end, tail = rest.partition("<!-- /gpu -->")
    lines = [f"Measured {found['date']} on {found['device']}, torch {found['torch']}, size `{found['size']}`.", ""]
    lines += [
        "| Task | ours, tokens/s | TRL or transformers | ratio | MFU | peak memory |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for task in TASKS:
        ours, theirs = found[task]["ours"], found[task]["theirs"]
        memory = " / ".join(f"{one['peak_memory_bytes'] / 2**30:.1f} GiB" for one in (ours, theirs))
        mfu = " / ".join("-" if one["mfu"] is None else f"{one['mfu']:.1%}" for one in (ours, theirs))
        rates = f"{ours['tokens_per_second']:,} | {theirs['tokens_per_second']:,}"
        lines.append(f"| {task} | {rates} | {found[task]['ratio']:.2f} | {mfu} | {memory} |")
    temporary = RESULTS.with_suffix(".partial")
    temporary.write_text(head + begin + "\n".join(lines) + "\n" + end + tail)
    temporary.replace(RESULTS)


def _arguments() -> argparse.Namespace:
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="1b" if torch.cuda.is_available() else "toy")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--results", action="store_true", help="write the table into RESULTS.md")
    parser.add_argument("--contestant", choices=("ours", "theirs"), help=argparse.SUPPRESS)
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
