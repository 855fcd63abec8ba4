"""Training and generation in bf16 against TRL and transformers on one device: `make bench-gpu`.

A Llama with random weights (`1b`: 1.2 billion parameters; `toy` where there is no GPU) learns made-up dialogues by SFT,
also with LoRA adapters over whole (`lora`) and 4-bit weights (`qlora`), as a reward model, by DPO and as a Decision
Transformer, and answers prompts. DPO's steps are timed without the reference, which both have read before. Every
contestant is a process of its own, given the same rows and the same number of sequences an optimiser step; they run one
after the other, `--rounds` times, the second time in the opposite order. The first steps are not timed.

Prints JSON: for each task tokens/s (padding not counted), model FLOP utilisation (6 FLOP a parameter and token for
training, 4 with adapters, 2 for generation, over the device's dense bf16 peak; null where that is not known) and peak
memory of `ours` and of `theirs`, with their ratio. `--results` writes the table into benchmarks/RESULTS.md.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from contests.gpu_contestants import contest
from contests.gpu_setup import SIZES, TASKS, prepare
from harness.machine import processor

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
# A parameter and token; 6 where all weights are learned.
FLOP = {"generate": 2, "lora": 4, "qlora": 4}
# Dense bf16 peaks of the makers' data sheets, FLOP/s.
PEAKS = {"A100": 312e12, "H100": 989e12, "H200": 989e12, "B200": 2250e12}


def main() -> None:
    given = _arguments()
    if given.contestant:
        print(json.dumps(contest(given.contestant, given.task, Path(given.folder), given.size)))
        return
    results = run(given.only, given.size, given.rounds)
    print(json.dumps(results, indent=2))
    if given.results:
        _write_results(results)


def run(tasks: list[str], size: str, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        prepare(folder, size)
        results: dict[str, Any] = {"size": size, **_machine()}
        for task in tasks:
            measured: dict[str, list[dict[str, Any]]] = {"ours": [], "theirs": []}
            for number in range(rounds):
                for side in ("ours", "theirs") if number % 2 == 0 else ("theirs", "ours"):
                    measured[side].append(_process(side, task, folder, size))
            results[task] = {side: _summary(all_of, task, results["peak_flops"]) for side, all_of in measured.items()}
            results[task]["ratio"] = round(
                results[task]["ours"]["tokens_per_second"] / results[task]["theirs"]["tokens_per_second"], 3
            )
    return results


def _summary(measured: list[dict[str, Any]], task: str, peak: float | None) -> dict[str, Any]:
    rate = statistics.median(figures["tokens_per_second"] for figures in measured)
    flop = FLOP.get(task, 6) * measured[0]["parameters"]
    return {
        "tokens_per_second": round(rate),
        "mfu": round(rate * flop / peak, 4) if peak else None,
        "peak_memory_bytes": max(figures["peak_memory_bytes"] for figures in measured),
        "all_tokens_per_second": [round(figures["tokens_per_second"]) for figures in measured],
    }


def _process(side: str, task: str, folder: Path, size: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--contestant", side, "--task", task, "--folder", str(folder), "--size", size]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{side} of {task} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _machine() -> dict[str, Any]:
    import torch

    name = torch.cuda.get_device_name() if torch.cuda.is_available() else processor()
    peak = next((flops for key, flops in PEAKS.items() if key in name), None)
    return {"date": dt.date.today().isoformat(), "device": name, "torch": torch.__version__, "peak_flops": peak}


# -- the results' page ----------------------------------------------------------------------------------------------


def _write_results(results: dict[str, Any]) -> None:
    """Put the table in the place of the last one."""
    head, begin, rest = RESULTS.read_text().partition("<!-- gpu -->\n")
    _, end, tail = rest.partition("<!-- /gpu -->")
    lines = [
        f"Measured {results['date']} on {results['device']}, torch {results['torch']}, size `{results['size']}`.",
        "",
    ]
    lines += [
        "| Task | ours, tokens/s | TRL or transformers | ratio | MFU | peak memory |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for task in (name for name in TASKS if name in results):
        ours, other = results[task]["ours"], results[task]["theirs"]
        memory = " / ".join(f"{side['peak_memory_bytes'] / 2**30:.1f} GiB" for side in (ours, other))
        mfu = " / ".join("-" if side["mfu"] is None else f"{side['mfu']:.1%}" for side in (ours, other))
        rates = f"{ours['tokens_per_second']:,} | {other['tokens_per_second']:,}"
        lines.append(f"| {task} | {rates} | {results[task]['ratio']:.2f} | {mfu} | {memory} |")
    temporary = RESULTS.with_suffix(".partial")
    temporary.write_text(head + begin + "\n".join(lines) + "\n" + end + tail)
    temporary.replace(RESULTS)


def _arguments() -> argparse.Namespace:
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="1b" if torch.cuda.is_available() else "toy")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", type=lambda given: given.split(","), default=list(TASKS), help="sft,dpo: these alone")
    parser.add_argument("--results", action="store_true", help="write the table into RESULTS.md")
    parser.add_argument("--contestant", choices=("ours", "theirs"), help=argparse.SUPPRESS)
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
