"""Training speed against TRL on preference pairs, as ratios: `make bench-training`.

A 6-layer, hidden-256 Llama with a vocabulary of 8,192 trains on 2 threads, at most 256 tokens a sequence, 32 sequences
an optimiser step (TRL: passes of several sizes that add up to them). The pairs are the hh ones, or made-up ones with
long prompts where these are not at hand. Every contestant is a process of its own with the same start weights and the
same token ids; they take turns, one optimiser step each, so that whatever else the machine does meets all of them
alike. Ours is the training stage itself, not a loop made for this. TRL's candidates do three steps each before it, and
the fastest of them is in the race.

What is in a figure of DPO and KTO: `ours` and `trl_best` are optimiser steps alone, for both have read the reference
before the first of them; a step of `trl_default` reads it as it goes, as TRL does unless told otherwise. KTO's step has
the pass over answers to other prompts on all sides, whose tokens are not counted. `reference` is what reading it costs
both, to where the log-probs are on the disk: tokens/s, and seconds for the rows of the steps. Ours reads the held-out
rows at the same rate, and shares the prompt of a pair.
`one_epoch` puts both together: tokens/s of a run that reads each row's reference once and learns from it once.

`make bench-training BENCH_ARGS="--only dpo,kto"` measures these two in about 12 minutes (`--minutes`): a race does
as few as six steps to keep within its share, however long these take on a machine that is not idle.

Prints JSON: {sft, reward_model, dpo, kto} x {fp32, bf16} -> non-padding tokens/s of full sequences for `ours`,
`trl_default` (gradient checkpointing) and `trl_best` (the best of TRL without it), their ratios, the held-out loss of
ours and of TRL's best after the same number of steps of 32 sequences, and `reference` and `one_epoch`, which are null
where there is no reference. Further: the machine, and where the pairs are from.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contests.training_contestants import run_ours
from contests.training_race import FEWEST_STEPS, OURS, Race
from contests.training_setup import DATA, METHODS, PRECISIONS, prepare
from contests.training_trl import run_trl
from harness.machine import machine
from harness.measure import say

# What a race of one method in one precision may take, its processes' start included.
MINUTES_OF_RACE = 3.0


def main() -> None:
    given = _arguments()
    if given.contestant:
        work = (given.folder, given.only[0], given.precisions[0], given.steps)
        if given.contestant == OURS:
            run_ours(*work)
        else:
            run_trl(*work, given.contestant)
        return
    races = [(method, precision) for method in given.only for precision in given.precisions]
    print(json.dumps(run(races, given.steps, 60 * (given.minutes or MINUTES_OF_RACE * len(races))), indent=2))


def run(races: list[tuple[str, str]], steps: int, seconds: float) -> dict[str, Any]:
    """What a race leaves of its share of `seconds` goes to those after it."""
    ends = time.monotonic() + seconds
    results: dict[str, Any] = {"machine": machine(), "pairs": DATA.name if DATA.is_file() else "made up"}
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with contextlib.redirect_stdout(sys.stderr):  # DeepSpeed, where it is installed, logs there
            prepare(folder, steps)
        for number, (method, precision) in enumerate(races):
            share = (ends - time.monotonic()) / (len(races) - number)
            result = Race(Path(__file__), folder, method, precision, share).run(steps)
            results.setdefault(method, {})[precision] = result
            say(f"{method} {precision}: {result}")
    return results


def _several(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = [name for name in text.split(",") if name]
        if not names or set(names) - set(known):
            raise argparse.ArgumentTypeError(f"some of {','.join(known)}, with commas between them")
        return names

    return parse


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12, help=f"of each at most, {FEWEST_STEPS} or more")
    parser.add_argument("--only", type=_several(METHODS), default=list(METHODS), help="methods, such as dpo,kto")
    parser.add_argument("--precisions", type=_several(PRECISIONS), default=list(PRECISIONS), help="fp32,bf16")
    parser.add_argument("--minutes", type=float, help=f"for all of it; {MINUTES_OF_RACE:g} of each race by default")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.contestant and given.steps < FEWEST_STEPS:
        parser.error(f"--steps: {FEWEST_STEPS} at least")
    return given


if __name__ == "__main__":
    main()
