"""Training shared by two processes, against one: `make bench-sharing`.

A 6-layer, hidden-256 Llama with random weights learns made-up answers (SFT, float32) in one process and in two, under
ddp, zero2 and zero3, each process on one thread. They run one after the other, `--rounds` times, every second time in
the opposite order; the first steps of each are not timed.

Prints JSON: for each way tokens/s (median of the timed steps), its ratio to one process, the largest relative
difference of its losses from those of one process, and the peak memory of its largest process in bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from contests.gpu_setup import WORDS
from harness.machine import machine

WAYS = (("one", 1, "ddp"), ("ddp", 2, "ddp"), ("zero2", 2, "zero2"), ("zero3", 2, "zero3"))
STEPS, WARM_STEPS = 10, 3
WINDOW, ROWS, BATCH = 256, 400, 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    rounds = parser.parse_args().rounds
    at_start = machine()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        prepare(folder)
        measured: dict[str, list[dict[str, Any]]] = {name: [] for name, *_ in WAYS}
        for number in range(rounds):
            for name, processes, strategy in WAYS if number % 2 == 0 else WAYS[::-1]:
                measured[name].append(run(folder, processes, strategy))
    print(json.dumps({"machine": at_start, "ways": summary(measured)}, indent=2))


def summary(measured: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    rates = {name: statistics.median(run["rate"] for run in runs) for name, runs in measured.items()}
    expected = measured["one"][0]["losses"]
    return {
        name: {
            "tokens_per_second": round(rates[name]),
            "over_one": round(rates[name] / rates["one"], 3),
            "loss_difference": max(
                abs(a - b) / b for run in runs for a, b in zip(run["losses"], expected, strict=True)
            ),
            "memory_bytes": int(max(run["memory"] for run in runs)),
            "all": [round(run["rate"]) for run in runs],
        }
        for name, runs in measured.items()
    }


def prepare(folder: Path) -> None:
    from steerboard_contracts.models import ModelInfo
    from steerboard_contracts.run_kinds.base import BaseModelConfig
    from steerboard_workers.stages.base import random_llama, train_tokenizer
    from steerboard_workers.stages.models.model_saving import save_model

    draw = random.Random(0)
    rows = [
        {
            "prompt": [{"role": "user", "content": " ".join(draw.choices(WORDS, k=draw.randint(5, 30)))}],
            "response": " ".join(draw.choices(WORDS, k=draw.randint(10, 60))),
            "row": row,
            "split": "train",
        }
        for row in range(ROWS)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tokenizer = train_tokenizer((row["response"] for row in rows), 512, WINDOW)
    shape = BaseModelConfig(source="random:tiny-llama", hidden=256, layers=6, heads=4, max_length=WINDOW)
    model = random_llama(shape, tokenizer)
    model.resize_token_embeddings(8192, mean_resizing=False)
    info = ModelInfo(role="base", architecture=type(model).__name__, parameters=0, max_length=WINDOW)
    save_model(folder / "model", model, tokenizer, info)


def run(folder: Path, processes: int, strategy: str) -> dict[str, Any]:
    """The training stage itself, as the platform starts it."""
    from steerboard_contracts.stage.events import STAGE_EVENT
    from steerboard_contracts.stage.inputs import DatasetInput, ModelInput
    from steerboard_contracts.stage.spec import STAGE_FILE, StageSpec

    config = {
        "run": "train",
        "method": "sft",
        "lr": 5e-4,
        "batch": BATCH,
        "max_steps": STEPS,
        "strategy": strategy,
        "precision": "fp32",
        "checkpoint_every": 0,
        "checkpoint_seconds": 0,
    }
    data = DatasetInput(
        name="rows", path=str(folder / "rows.jsonl"), kind="instructions", rows=ROWS, content_hash="rows"
    )
    model = ModelInput(name="model", path=str(folder / "model"), content_hash="model")
    work = Path(tempfile.mkdtemp(dir=folder))
    spec = StageSpec(run_id="bench", name="sft", config=config, inputs={"model": model, "data": data}, threads=1)
    (work / STAGE_FILE).write_text(spec.model_dump_json())
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    command = [sys.executable, *(launcher if processes > 1 else []), "-m", "steerboard_workers.stages", str(work)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False
    )
    if done.returncode:
        raise SystemExit(f"{strategy} over {processes} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    events = [STAGE_EVENT.validate_json(line) for line in done.stdout.splitlines()]
    steps = [event.values for event in events if event.type == "metrics"]
    return {
        "rate": statistics.median(values["tokens_per_second"] for values in steps[WARM_STEPS:]),
        "losses": [values["loss"] for values in steps],
        "memory": events[-1].summary["memory_measured"],
    }


if __name__ == "__main__":
    main()
