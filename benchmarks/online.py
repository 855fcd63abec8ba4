"""Phases of an online step next to TRL's, as ratios: `make bench-online`.

A Llama with a vocabulary of 8,192 and random weights answers the same prompts as many times, to the same length: the
end token is ignored on both sides. Rewards cost next to nothing (whether a letter is there), so that sampling and
learning are measured. Ours is the training stage itself; TRL's GRPO and RLOO trainers are those of 1.16 (GSPO, CISPO,
DAPO's loss and SAPO are options of its GRPO), its PPO trainer that of 1.9.2, the last to have one, in an environment of
its own. TRL samples with transformers. Its candidates (answers of a pass, continuous batching) do three steps each
before the race, and the fastest of them is in it. Each contestant is a process of its own with the same number of
threads; they take turns, run by run, so that other load on the machine meets both. The first step of a run is not
counted.

    make bench-online BENCH_ARGS="--steps 6 --rounds 3"

Prints JSON: machine, precision, sizes, and for each method (`--only`) the seconds of a step (median over steps and
rounds) by phase for `ours`, `ours_vllm` (which samples by vLLM, where `make setup-vllm` was run) and `trl`, with
`ratio` and `ratio_ours_vllm`, TRL's step over ours; `trl_best` is the candidate in the race, `trl_candidates` the
seconds of a step of each, null for one that failed. A table of these goes to standard error. TRL's `update` has its
passes of the reference.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from contests.online_setup import METHODS, PRECISIONS, TRL_OPTIONS, TRL_PPO_PYTHON, Sizes, prepare
from harness.machine import machine
from harness.measure import say

from steerboard.platform.processes.vllm import find_python
from steerboard.platform.settings import Settings
from steerboard_contracts.engine import EngineName
from steerboard_workers.supervisor.allocation import allocation

OURS, BY_VLLM, TRL = "ours", "ours_vllm", "trl"
ENGINES: dict[str, EngineName] = {OURS: "transformers", BY_VLLM: "vllm"}
CANDIDATE_STEPS = 3
PHASES = ("sync", "generate", "score", "reference", "value", "update")


def main() -> None:
    given = _arguments()
    sizes = Sizes(given.prompts, given.answers, given.prompt_tokens, given.new_tokens, given.hidden, given.layers)
    if given.contestant:
        if given.contestant == TRL:
            from contests.online_trl import run_trl

            print(json.dumps(run_trl(given.folder, given.only[0], given.option, sizes, given.steps, given.precision)))
            return
        from contests.online_ours import run_ours

        engine = ENGINES[given.contestant]
        print(json.dumps(run_ours(given.folder, given.only[0], sizes, given.steps, given.precision, engine)))
        return
    results: dict[str, Any] = {"machine": machine(), "threads": given.threads, "precision": given.precision}
    results["sizes"] = sizes.__dict__
    with tempfile.TemporaryDirectory(prefix="bench-online-") as name:
        folder = Path(name)
        with contextlib.redirect_stdout(sys.stderr):  # DeepSpeed, where it is installed, logs there
            prepare(folder, sizes, max(given.steps, CANDIDATE_STEPS))
        for method in given.only:
            results[method] = _measured(folder, method, sizes, given)
            say(_line(method, results[method]))
    print(json.dumps(results, indent=2))


def _measured(folder: Path, method: str, sizes: Sizes, given: argparse.Namespace) -> dict[str, Any]:
    candidates = _candidates(folder, method, sizes, given)
    known = {option: seconds for option, seconds in candidates.items() if seconds is not None}
    best = min(known, key=lambda option: known[option])
    names = [*given.contestants, TRL]
    steps: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(given.rounds):
        for name in names:
            steps[name] += _run(folder, method, name, best, sizes, given, given.steps)[1:]
    entry: dict[str, Any] = {"trl_best": best, "trl_candidates": candidates}
    for name, each in steps.items():
        keys = sorted({key for step in each for key in step})
        entry[name] = {key: round(statistics.median(step.get(key, 0.0) for step in each), 4) for key in keys}
    for name in given.contestants:
        entry["ratio" if name == OURS else f"ratio_{name}"] = round(entry[TRL]["step"] / entry[name]["step"], 3)
    return entry


def _candidates(folder: Path, method: str, sizes: Sizes, given: argparse.Namespace) -> dict[str, float | None]:
    """Seconds of a step of each of TRL's options that divide the step."""
    medians: dict[str, float | None] = {}
    for option, values in TRL_OPTIONS[method].items():
        if sizes.samples % values["rows"] or values["rows"] > sizes.samples:
            continue
        try:
            steps = _run(folder, method, TRL, option, sizes, given, CANDIDATE_STEPS)[1:]
        except ContestantFailed as failure:
            say(str(failure))
            medians[option] = None
        else:
            medians[option] = round(statistics.median(step["step"] for step in steps), 4)
    if not any(medians.values()):
        raise SystemExit(f"no candidate of TRL's {method} ran; --prompts times --answers: a multiple of 8")
    return medians


class ContestantFailed(Exception):
    """A contestant's process ended early."""


def _run(
    folder: Path, method: str, name: str, option: str, sizes: Sizes, given: argparse.Namespace, steps: int
) -> list[dict[str, float]]:
    """Seconds by phase of each step."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(given.threads),
        "MKL_NUM_THREADS": str(given.threads),
        "TRANSFORMERS_VERBOSITY": "error",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        # As a worker starts a stage; for both.
        **allocation(),
    }
    if name == TRL and method == "ppo":
        script = Path(__file__).parent / "contests" / "online_trl_ppo.py"
        command = [str(TRL_PPO_PYTHON), str(script), str(folder), option, str(steps)]
        command += [json.dumps(sizes.options), given.precision]
    else:
        options = {"contestant": name, "folder": folder, "only": method, "option": option, "steps": steps}
        named = {**options, **sizes.options, "precision": given.precision}
        command = [sys.executable, __file__, *(f"--{key.replace('_', '-')}={value}" for key, value in named.items())]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise ContestantFailed(f"{name} of {method} ({option}) ended early:\n{done.stderr[-2000:]}")
    measured: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return measured


def _line(method: str, entry: dict[str, Any]) -> str:
    parts = []
    for name in (OURS, BY_VLLM, TRL):
        if name in entry:
            shown = " ".join(f"{key} {entry[name][key]:.3f}" for key in ("step", *PHASES) if key in entry[name])
            parts.append(f"{name}: {shown}")
    return f"{method:5} {' | '.join(parts)} | ratio {entry['ratio']} (TRL's best: {entry['trl_best']})"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4, help="of a run, the first of which is not counted")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each contestant")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompts", type=int, default=8, help="of a step")
    parser.add_argument("--answers", type=int, default=8, help="to each prompt")
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32", help="of both; bf16: mixed, weights in fp32")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(METHODS), help="such as grpo,rloo")
    parser.add_argument("--no-vllm", action="store_true", help="leave sampling by vLLM out")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    parser.add_argument("--option", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.contestants = [OURS] if given.no_vllm or find_python(Settings()) is None else [OURS, BY_VLLM]
    if set(given.only) - set(METHODS) or given.steps < 2:
        parser.error(f"--only: some of {','.join(METHODS)}; --steps: 2 at least")
    return given


if __name__ == "__main__":
    main()
