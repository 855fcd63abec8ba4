"""What a Decision Transformer costs next to DPO, best of n, PPO and RLOO: `make bench-claim`.

On servers of its own, with one worker, the recipe claim.yaml trains all five from one SFT model and one reward model on
the SYNTHETIC demo data, at each seed. A second reward model, from which nothing learns, and the known
quality of the answers judge them. PPO's learning rate is the best of a small sweep at the first seed, by that judge.

    make bench-claim BENCH_ARGS="--seeds 1,2,3"

Prints JSON on standard output. Progress, tables and conclusions are on standard error, too. A figure over seeds is its
median, low and high over `seeds` of `of` seeds, or null where no seed has one.

- machine, seconds, quick, sizes, parameters (of the SFT model), held_out_prompts, judge_accuracy (on held-out pairs, of
  each seed);
- sweep: `tried`, of each learning rate the judge's score, the reward and device-seconds at equal samples; `chosen`;
  `seconds` of all;
- ratios: for dpo, best_of_n, ppo and rloo DT's cost over theirs; below 1, DT is cheaper. `occupied`: device-seconds at
  equal samples. `arithmetic`: operations at equal samples, from tokens. `arithmetic_one_epoch`: the same with one pass
  of DT over its samples. `to_equal_score`: DT's device-seconds over those until the judge scores the other method's
  answers to held-out prompts as high as DT's at the end; null where it never does, and for best of n, which costs again
  at each prompt;
- scores: by method, `judge`, `quality` and `reward` of greedy answers to held-out prompts; `kl` from SFT in nats (of
  best of n a bound), with `sampled_judge` and `sampled_quality` of the sampled answers that have it;
- costs: by method, device-seconds and operations a parameter at equal samples; `failed_seconds`: of failed attempts;
- by_seed: DT's score as `target`, `best_offline` and the figures of each method; of online ones the `curve`: step,
  samples, seconds, arithmetic, judge, reward and kl at each look, and what was `spent` in the whole run;
- may, may_not: what a reader may conclude and what not, in words.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from contests.claim_document import document
from contests.claim_platform import SeedResult, Sizes, import_data, outcome, recipe_of, run, steps_of, swept
from contests.claim_words import words_of
from harness.machine import machine
from harness.measure import say
from harness.running_platform import platform

FULL = Sizes(samples=2240, reach=3, looks=5, quick=False)
QUICK = Sizes(samples=128, reach=2, looks=2, quick=True)
SWEEP = [5e-5, 1e-4, 2e-4]


def main() -> None:
    given = _arguments()
    with tempfile.TemporaryDirectory(prefix="bench-", dir=given.folder) as folder:
        figures = measured(Path(folder), given.seeds, QUICK if given.quick else FULL, given.sweep)
    say("\n".join(words_of(figures)))
    print(json.dumps(figures, indent=2))


def measured(folder: Path, seeds: list[int], sizes: Sizes, rates: list[float]) -> dict[str, Any]:
    at_start, began = machine(), time.monotonic()
    with platform(folder / "home", workers=1) as bench, bench.client() as client:
        inputs = import_data(client, folder / "data", sizes)
        tried: list[dict[str, Any]] = []
        for rate in rates:
            short = swept(recipe_of(sizes, seeds[0], rate), sizes)
            ppo = run(client, short, inputs, f"sweep, lr {rate:g}")["ppo"]
            last = steps_of(client, ppo)[-1]
            looked = {"judge": last["eval_reward_model_2"], "reward": last["eval_reward_model"]}
            tried.append({"lr": rate, **looked, "seconds": ppo["ledger"]["device_seconds"]})
        best = max(tried, key=lambda trial: float(trial["judge"]))
        outcomes: dict[int, SeedResult] = {}
        for seed in seeds:
            runs = run(client, recipe_of(sizes, seed, best["lr"]), inputs, f"seed {seed}")
            outcomes[seed] = outcome(client, runs)
    about = {
        "machine": at_start | {"load_after": machine()["load"]},
        "seconds": round(time.monotonic() - began, 1),
        "sweep": {"tried": tried, "chosen": best["lr"], "seconds": sum(trial["seconds"] for trial in tried)},
    }
    return document(about, sizes, outcomes)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=_numbers(int), help="such as 1,2,3, the default; with --quick 1")
    parser.add_argument("--sweep", type=_numbers(float), help="learning rates of PPO, by default 5e-5,1e-4,2e-4")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: whether it runs, without any meaning")
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    given = parser.parse_args()
    given.seeds = given.seeds or ([1] if given.quick else [1, 2, 3])
    given.sweep = given.sweep or (SWEEP[:2] if given.quick else SWEEP)
    return given


def _numbers(of: type[int] | type[float]) -> Any:
    def parse(text: str) -> list[float]:
        return [of(part) for part in text.split(",")]

    return parse


if __name__ == "__main__":
    main()
