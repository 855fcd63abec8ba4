"""The race of `make bench-training`: contestants take turns of one optimiser step each."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from contests.training_trl import DEFAULT, TRL

from steerboard_workers.supervisor.allocation import allocation

THREADS = 2
OURS = "ours"
WARM_STEPS = 2
# The last step is not timed either: its end is that of the run.
FEWEST_STEPS = WARM_STEPS + 4
# The steps of each of TRL's candidates before the race; all but the first decide which of them is in it.
SWEEP_STEPS = 3
# What a race takes of its time before its first step, and after its last one.
_AROUND_SECONDS = 45.0
# Steps of TRL's best that a round of all three, and reading their references, take about as long as.
_ROUND_STEPS = 4.0


class Contestant:
    """A process that trains; `rates` are the non-padding tokens/s of each of its steps, which took `seconds`."""

    def __init__(self, script: Path, folder: Path, method: str, precision: str, name: str, steps: int) -> None:
        self.name = name
        self.rates: list[float] = []
        self.seconds: list[float] = []
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(THREADS),
            "MKL_NUM_THREADS": str(THREADS),
            "TRANSFORMERS_VERBOSITY": "error",
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            # As a worker starts a stage; for both.
            **allocation(),
        }
        command = [sys.executable, str(script), "--contestant", name, "--folder", str(folder)]
        command += ["--only", method, "--precisions", precision, "--steps", str(steps)]
        self._log = (folder / f"{method}-{precision}-{name}.log").open("w+")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=environment, text=True
        )

    def is_ready(self) -> None:
        self._read()

    def step(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        message = self._read()
        self.rates.append(message["tokens"] / message["seconds"])
        self.seconds.append(message["seconds"])

    def result(self) -> dict[str, float]:
        """What it found in the end: `loss` of the held-out rows, and what its reference cost if it has one."""
        figures = self._read()
        self._process.wait()
        return figures

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()

    def _read(self) -> dict[str, float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise SystemExit(f"{self.name} ended early:\n{self._log.read()[-2000:]}")
        return json.loads(line)


class Race:
    """One method in one precision. `seconds`: what it should take; it does fewer steps where they would take longer."""

    def __init__(self, script: Path, folder: Path, method: str, precision: str, seconds: float) -> None:
        self._of = (script, folder, method, precision)
        self._candidates = [name for name in TRL[method] if name != DEFAULT]
        self._ends = time.monotonic() + seconds

    def run(self, steps: int) -> dict[str, Any]:
        """`steps` at most of ours, TRL's default and its best."""
        best, swept = self._candidates[0], {}
        if len(self._candidates) > 1:
            tried, _ = self._together(self._candidates, SWEEP_STEPS + 1, SWEEP_STEPS)
            swept = {name: round(statistics.median(contestant.rates[1:])) for name, contestant in tried.items()}
            best = max(swept, key=lambda name: swept[name])
            left = self._ends - time.monotonic() - _AROUND_SECONDS
            fit = left / (_ROUND_STEPS * statistics.median(tried[best].seconds[1:]))
            steps = max(FEWEST_STEPS, min(steps, int(fit)))
        runners, results = self._together([OURS, DEFAULT, best], steps, steps)
        # Medians, so that a moment of other load does not decide.
        rates = {name: statistics.median(runner.rates[WARM_STEPS : steps - 1]) for name, runner in runners.items()}
        return summary(rates, results, best, swept) | {"steps": steps}

    def _together(
        self, names: list[str], steps: int, do: int
    ) -> tuple[dict[str, Contestant], dict[str, dict[str, float]]]:
        """The first `do` of `steps` steps of each, in turns, and their results where these are all of them."""
        runners = {name: Contestant(*self._of, name, steps) for name in names}
        results: dict[str, dict[str, float]] = {}
        try:
            for runner in runners.values():
                runner.is_ready()
            for _ in range(do):
                for runner in runners.values():
                    runner.step()
            if do == steps:
                results = {name: runner.result() for name, runner in runners.items()}
        finally:
            for runner in runners.values():
                runner.close()
        return runners, results


def summary(
    rates: dict[str, float], results: dict[str, dict[str, float]], best: str, swept: dict[str, int]
) -> dict[str, Any]:
    """The entry of a method and precision, from tokens/s and what `result` gave."""
    ours, other = results[OURS], results[best]
    return {
        **_ratios(rates[OURS], rates[DEFAULT], rates[best]),
        "loss_ours": round(ours["loss"], 4),
        "loss_trl": round(other["loss"], 4),
        "trl_best_is": best,
        "trl_swept": swept,
        "reference": _reference(ours, other),
        "one_epoch": _one_epoch(rates, best, ours, other),
    }


def _ratios(ours: float, default: float, best: float) -> dict[str, float]:
    return {
        "ours": round(ours),
        "trl_default": round(default),
        "trl_best": round(best),
        "ratio_default": round(ours / default, 3),
        "ratio_best": round(ours / best, 3),
    }


def _reference(ours: dict[str, float], other: dict[str, float]) -> dict[str, float] | None:
    """Tokens/s of the passes that read the reference, and seconds for the rows of the steps; None without one."""
    if "reads" not in ours or "reads" not in other:
        return None
    rates = [figures["reference_tokens"] / figures["reference_seconds"] for figures in (ours, other)]
    return {
        "ours": round(rates[0]),
        "trl_best": round(rates[1]),
        "ratio_best": round(rates[0] / rates[1], 3),
        "ours_seconds": round(other["reference_tokens"] / rates[0], 2),
        "trl_seconds": round(other["reference_tokens"] / rates[1], 2),
    }


def _one_epoch(
    rates: dict[str, float], best: str, ours: dict[str, float], other: dict[str, float]
) -> dict[str, float] | None:
    """Tokens/s of a run of one epoch that reads its reference first. TRL's default reads it in each step."""
    if "reads" not in ours or "reads" not in other:
        return None

    def whole(rate: float, figures: dict[str, float]) -> float:
        return 1 / (1 / rate + figures["reads"] * figures["reference_seconds"] / figures["reference_tokens"])

    return _ratios(whole(rates[OURS], ours), rates[DEFAULT], whole(rates[best], other))
