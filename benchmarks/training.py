"""Training speed against TRL on the hh preference pairs, as ratios: `make bench-training`.

A 6-layer, hidden-256 Llama with a vocabulary of 8,192 trains on 2 threads, at most 256 tokens a sequence, 32 sequences
an optimiser step (TRL: 8 with accumulation 4). Every contestant is a process of its own with the same start weights
and the same token ids; they take turns, one optimiser step each, so that whatever else the machine does meets all of
them alike. Ours is the training stage itself, not a loop made for this.

Log-probs of the reference are computed before the first timed step, by ours and by TRL where it can.

Prints JSON: {sft, reward_model, dpo} x {fp32, bf16} -> non-padding tokens/s of full sequences for `ours`, `trl_default`
(gradient checkpointing) and `trl_best` (the best of TRL without it), their ratios, and the held-out loss of ours and
of TRL's best after the same number of steps of 32 sequences.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

THREADS = 2
MAX_LENGTH = 256
SEQUENCES = 32
WARM_STEPS = 2
LR = 5e-4
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "hh_rlhf" / "pairs_2000.jsonl.gz"
METHODS = ("sft", "reward_model", "dpo")
PRECISIONS = ("fp32", "bf16")
_PRECOMPUTED = {"precompute_ref_log_probs": True, "pad_to_multiple_of": None}
# TRL's candidates for its best: none checkpoints gradients. Rows are sequences (SFT) or pairs. `by_length`: the pairs
# of a step are sorted, so that TRL's passes have little padding while its steps are of the same pairs.
TRL: dict[str, dict[str, dict[str, Any]]] = {
    "sft": {
        "trl_default": {"rows": 8, "accumulate": 4, "gradient_checkpointing": True},
        "trl_grouped": {"rows": 8, "accumulate": 4, "train_sampling_strategy": "group_by_length"},
    },
    "reward_model": {
        "trl_default": {"rows": 4, "accumulate": 4, "gradient_checkpointing": True},
        "trl_4_pairs": {"rows": 4, "accumulate": 4},
        "trl_8_pairs": {"rows": 8, "accumulate": 2},
    },
    "dpo": {
        "trl_default": {"rows": 8, "accumulate": 2, "gradient_checkpointing": True},
        "trl_2_pairs": {"rows": 2, "accumulate": 8, "by_length": True, **_PRECOMPUTED},
        "trl_4_pairs": {"rows": 4, "accumulate": 4, "by_length": True, **_PRECOMPUTED},
        "trl_8_pairs": {"rows": 8, "accumulate": 2, "by_length": True, **_PRECOMPUTED},
        "trl_16_pairs": {"rows": 16, "accumulate": 1, **_PRECOMPUTED},
    },
}


# -- the data -----------------------------------------------------------------------------------------------------


def hh_rows() -> list[dict[str, Any]]:
    """Pairs whose dialogues differ in the last answer only, as turns; every tenth is held out."""
    rows = []
    with gzip.open(DATA, "rt", encoding="utf-8") as file:
        for line in file:
            pair = json.loads(line)
            chosen, rejected = _turns(pair["chosen"]), _turns(pair["rejected"])
            same = chosen[:-1] == rejected[:-1] and len(chosen) >= 2 and chosen[-2]["role"] == "user"
            if not same or not all(turn["content"].strip() for turn in [*chosen, rejected[-1]]):
                continue
            row = {"row": len(rows), "split": "train" if len(rows) % 10 else "held_out", "half": "a"}
            row |= {"prompt": chosen[:-1], "chosen": chosen[-1]["content"], "rejected": rejected[-1]["content"]}
            rows.append({**row, "response": row["chosen"]})
    return rows


def _turns(text: str) -> list[dict[str, str]]:
    parts = re.split(r"\n\n(Human|Assistant): ?", text)[1:]
    roles = {"Human": "user", "Assistant": "assistant"}
    return [{"role": roles[role], "content": content} for role, content in zip(parts[::2], parts[1::2], strict=True)]


def prepare(folder: Path) -> None:
    """Write the pairs, the base model and, for the reward models, one with its head."""
    import torch

    from steerboard_contracts.configs import BaseModelConfig
    from steerboard_contracts.methods.reward_model import RewardModelConfig
    from steerboard_contracts.models import ModelInfo
    from steerboard_workers.stages.base import random_llama, train_tokenizer
    from steerboard_workers.stages.models.model_io import save_model
    from steerboard_workers.stages.training.setup import open_model

    rows = hh_rows()
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    texts = (
        text
        for row in rows
        for text in [*(f"User: {m['content']} Assistant:" for m in row["prompt"]), row["chosen"], row["rejected"]]
    )
    tokenizer = train_tokenizer(texts, 8192, MAX_LENGTH)
    shape = BaseModelConfig(
        source="random:tiny-llama", vocabulary=8192, hidden=256, layers=6, heads=4, max_length=MAX_LENGTH
    )
    model = random_llama(shape, tokenizer)
    info = ModelInfo(role="base", architecture=type(model).__name__, parameters=0, max_length=MAX_LENGTH)
    save_model(folder / "sft", model, tokenizer, info)
    start = open_model(folder / "sft", RewardModelConfig(method="reward_model"))
    with torch.no_grad():
        save_model(folder / "reward_model", start.model, start.tokenizer, info.model_copy(update={"role": "reward"}))


# -- contestants: each runs in a process of its own and does one step when told to ------------------------------------


class Turns:
    """One optimiser step each time the parent asks for it."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self._started = 0.0

    def wait(self) -> None:
        if not sys.stdin.readline():
            sys.exit(1)
        self._started = time.perf_counter()

    def done(self, tokens: float) -> None:
        self._say({"tokens": tokens, "seconds": time.perf_counter() - self._started})

    def finish(self, loss: float) -> None:
        self._say({"loss": loss})

    def _say(self, message: dict[str, float]) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()


def _config(method: str, precision: str, steps: int) -> dict[str, Any]:
    return {
        "run": "train",
        "method": method,
        "lr": LR,
        "batch": SEQUENCES if method == "sft" else SEQUENCES // 2,
        "epochs": 1000,
        "max_steps": steps,
        "warmup_ratio": 0,
        "min_lr_ratio": 1,
        "adam_beta2": 0.999,
        "max_length": MAX_LENGTH,
        "precision": precision,
        "checkpoint_every": 0,
        "checkpoint_seconds": 0,
    }


def _start(method: str) -> str:
    """The folder of the model that training starts from, and that is the reference."""
    return "reward_model" if method == "reward_model" else "sft"


def run_ours(folder: Path, method: str, precision: str, steps: int) -> None:
    """The training stage as it is; its stage object hands the turn on after each step's metrics."""
    from steerboard_contracts.stage import DatasetInput, ModelInput, StageSpec
    from steerboard_workers.stages import train
    from steerboard_workers.stages.runtime import EventWriter, Stage

    turns = Turns()

    class PacedStage(Stage):
        def metrics(self, step: int, values: Any) -> None:
            turns.done(values["tokens"])
            if step < steps:
                turns.wait()
            else:
                turns.finish(values["eval_loss"])

    work = Path(tempfile.mkdtemp(dir=folder))
    spec = StageSpec(
        run_id="bench",
        name=method,
        config=_config(method, precision, steps),
        inputs={
            "model": ModelInput(name="start", path=str(folder / _start(method)), content_hash=""),
            "data": DatasetInput(
                name="hh", path=str(folder / "pairs.jsonl"), kind="preferences", rows=0, content_hash=""
            ),
        },
    )
    turns.wait()
    train.run(PacedStage(work, spec, EventWriter(os.open(os.devnull, os.O_WRONLY))))


def run_trl(folder: Path, method: str, precision: str, steps: int, name: str) -> None:
    """TRL's trainer on the ids that our renderer makes of the same rows."""
    import torch
    from transformers import TrainerCallback
    from trl import DPOConfig, DPOTrainer, RewardConfig, RewardTrainer, SFTConfig, SFTTrainer

    from datasets import Dataset
    from steerboard_contracts.stage import DatasetInput, StageSpec
    from steerboard_workers.alignment.batching import Batcher
    from steerboard_workers.alignment.methods import training_of
    from steerboard_workers.alignment.order import Order
    from steerboard_workers.stages.runtime import EventWriter, Stage
    from steerboard_workers.stages.training.data import load_data
    from steerboard_workers.stages.training.setup import open_model

    turns = Turns()
    data = DatasetInput(name="hh", path=str(folder / "pairs.jsonl"), kind="preferences", rows=0, content_hash="")
    spec = StageSpec(run_id="bench", name=name, config=_config(method, precision, steps), inputs={"data": data})
    stage = Stage(folder, spec, EventWriter(os.open(os.devnull, os.O_WRONLY)))
    start = open_model(folder / _start(method), spec.config)
    examples = load_data(stage, training_of(spec.config), start.renderer)
    options = dict(TRL[method][name])
    by_length = options.pop("by_length", False)
    arguments = {
        "output_dir": str(folder / name),
        "per_device_train_batch_size": options.pop("rows"),
        "gradient_accumulation_steps": options.pop("accumulate"),
        "gradient_checkpointing": options.pop("gradient_checkpointing", False),
        "max_steps": steps,
        "learning_rate": LR,
        "lr_scheduler_type": "constant",
        "bf16": precision == "bf16",
        "use_cpu": True,
        "max_length": MAX_LENGTH,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        **options,
    }

    class TokenisedDPOTrainer(DPOTrainer):
        def _prepare_dataset(self, dataset: Any, *_: Any) -> Any:
            return dataset

    class Paced(TrainerCallback):
        tokens = 0.0

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            seen = trainer._total_train_tokens
            turns.done(seen - self.tokens)
            self.tokens = seen
            if state.global_step < steps:
                turns.wait()

    if method == "sft":
        ids = [[*e.prompt.tolist(), *e.responses[0].tolist()] for e in examples.train]
        masks = [[0] * len(e.prompt) + [1] * len(e.responses[0]) for e in examples.train]
        rows = Dataset.from_dict({"input_ids": ids, "completion_mask": masks})
        kind, config = SFTTrainer, SFTConfig(**arguments, completion_only_loss=True)
    else:
        # In the order that ours draws, so that after as many steps both have seen the same pairs.
        order = Order(len(examples.train), SEQUENCES // 2, 1000, spec.config.seed)
        drawn = [[examples.train[i] for i in order.step(step)] for step in range(steps)]
        if by_length:
            drawn = [sorted(step, key=lambda e: max(e.lengths)) for step in drawn]
        pairs = [e for step in drawn for e in step]
        prompts = [e.prompt.tolist() for e in pairs]
        sides = [[e.responses[side].tolist() for e in pairs] for side in (0, 1)]
        if method == "dpo":
            rows = Dataset.from_dict({"prompt_ids": prompts, "chosen_ids": sides[0], "rejected_ids": sides[1]})
            kind, config = TokenisedDPOTrainer, DPOConfig(**arguments, train_sampling_strategy="sequential")
        else:
            whole = [[p + s for p, s in zip(prompts, side, strict=True)] for side in sides]
            rows = Dataset.from_dict({"chosen_ids": whole[0], "rejected_ids": whole[1]})
            kind, config = RewardTrainer, RewardConfig(**arguments, train_sampling_strategy="sequential")
    held_out = _with_reference(start, examples.held_out, precision) if method == "dpo" else examples.held_out
    trainer = kind(
        model=start.model, args=config, train_dataset=rows, processing_class=start.tokenizer, callbacks=[Paced()]
    )
    turns.wait()
    trainer.train()
    module, objective = start.module().eval(), training_of(spec.config).objective()
    batcher = Batcher("padded", objective.reads, 2048, start.tokenizer.pad_token_id)
    sums = torch.zeros(len(objective.measures), dtype=torch.float64)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        for part in batcher.cut(held_out)[0]:
            batch = batcher.collate(part)
            sums += objective.forward(module(**batch.model_inputs()), batch)[1]
    turns.finish(objective.metrics(dict(zip(objective.measures, sums.tolist(), strict=True)))["loss"])


def _with_reference(start: Any, examples: list[Any], precision: str) -> list[Any]:
    """With log-probs of the start model, which is about to change."""
    import torch

    from steerboard_workers.alignment.batching import Batcher
    from steerboard_workers.alignment.losses import sequence_sums

    module, found = start.module().eval(), []
    batcher = Batcher("padded", "labels", 2048, start.tokenizer.pad_token_id)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        for part in batcher.cut(examples)[0]:
            batch = batcher.collate(part)
            sums = sequence_sums(module(**batch.model_inputs())[0], batch.label_counts).view(-1, 2).numpy()
            found += [replace(e, frozen_log_probs={"reference": pair}) for e, pair in zip(part, sums, strict=True)]
    return found


# -- the race -----------------------------------------------------------------------------------------------------


class Contestant:
    def __init__(self, folder: Path, method: str, precision: str, name: str, steps: int) -> None:
        self.name = name
        self.rates: list[float] = []
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(THREADS),
            "MKL_NUM_THREADS": str(THREADS),
            "TRANSFORMERS_VERBOSITY": "error",
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }
        command = [sys.executable, __file__, "--contestant", name, "--folder", str(folder)]
        command += ["--methods", method, "--precisions", precision, "--steps", str(steps)]
        self._log = (folder / f"{method}-{precision}-{name}.log").open("w+")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=environment, text=True
        )

    def step(self, counts: bool) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        message = self._read()
        if counts:
            self.rates.append(message["tokens"] / message["seconds"])

    def loss(self) -> float:
        loss = self._read()["loss"]
        self._process.wait()
        return loss

    def close(self) -> None:
        self._process.kill()

    @property
    def rate(self) -> float:
        """Median over the timed steps, so that a moment of other load does not decide."""
        return statistics.median(self.rates)

    def _read(self) -> dict[str, float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise SystemExit(f"{self.name} ended early:\n{self._log.read()[-2000:]}")
        return json.loads(line)


def race(folder: Path, method: str, precision: str, steps: int) -> dict[str, Any]:
    """`steps` optimiser steps of each contestant, in turns. The first ones and the last one are not timed."""
    runners = [Contestant(folder, method, precision, name, steps) for name in ("ours", *TRL[method])]
    try:
        for step in range(steps):
            for runner in runners:
                runner.step(counts=WARM_STEPS <= step < steps - 1)
        losses = {runner.name: runner.loss() for runner in runners}
    finally:
        for runner in runners:
            runner.close()
    rates = {runner.name: runner.rate for runner in runners}
    default = rates["trl_default"]
    name, best = max(((n, r) for n, r in rates.items() if n not in ("ours", "trl_default")), key=lambda item: item[1])
    return {
        "ours": round(rates["ours"]),
        "trl_default": round(default),
        "trl_best": round(best),
        "ratio_default": round(rates["ours"] / default, 3),
        "ratio_best": round(rates["ours"] / best, 3),
        "loss_ours": round(losses["ours"], 4),
        "loss_trl": round(losses[name], 4),
        "trl_best_is": name,
        "steps": steps,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=14, help="optimiser steps of each contestant")
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--precisions", nargs="+", default=PRECISIONS, choices=PRECISIONS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contestant:
        work = (options.folder, options.methods[0], options.precisions[0], options.steps)
        if options.contestant == "ours":
            run_ours(*work)
        else:
            run_trl(*work, options.contestant)
        return
    if not DATA.is_file():
        print(f"no benchmark: it needs the preference pairs of {DATA}", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        results: dict[str, dict[str, Any]] = {}
        for method in options.methods:
            for precision in options.precisions:
                results.setdefault(method, {})[precision] = race(folder, method, precision, options.steps)
                print(f"{method} {precision}: {results[method][precision]}", file=sys.stderr)
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
