"""The platform's part of `make bench-claim`: the demo data, the pipelines of claim.yaml, and what they left behind."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml
from harness.measure import say

from steerboard_contracts.watching.ledger import Ledger

RECIPE = Path(__file__).with_name("claim.yaml")
BATCH, MINIBATCHES = 64, 4  # answers of a sampling of PPO and RLOO, and the steps that learn them
BEST_OF = 8
# Methods by their entrants in both evaluations of the recipe.
ENTRANTS = {
    "sft": "sft",
    "dt": "dt_5",
    "dpo": "dpo",
    "best_of_n": f"sft_best_of_{BEST_OF}",
    "ppo": "ppo",
    "rloo": "rloo",
}
ONLINE = ("ppo", "rloo")
# What DT's cost is made of.
DT_STAGES = ("generated", "mixture", "labelled", "dt")
_SOURCES = {"reward": "reward", "judge": "independent", "quality": "known quality"}
# The metrics of a step of an online run.
_METRICS = (
    *("tokens", "tokens_per_second", "generate_tokens", "score_tokens", "score_seconds", "reference_tokens"),
    *("value_tokens", "kl", "eval_reward_model", "eval_reward_model_2"),
)
_SWEPT = ("base", "sft", "reward", "independent", "ppo")
_ENDED = {"succeeded", "failed", "cancelled", "skipped"}
_IMPORT = httpx.Timeout(600.0, connect=5.0)
# What makes `--quick` quick: nothing is learned by such models.
_QUICK: dict[str, dict[str, Any]] = {
    "base": {"hidden": 64, "layers": 2, "heads": 4},
    "sft": {"max_steps": 40},
    "reward": {"max_steps": 20},
    "independent": {"max_steps": 20},
    "generated": {"limit": 64},
    "dt": {"epochs": 1},
    "scores": {"prompts": 12},
    "frontier": {"prompts": 12},
}


@dataclass(frozen=True)
class Sizes:
    """`samples`: labelled for DT, both sides of DPO's pairs, and what PPO and RLOO sample at equal samples, a multiple
    of `BATCH`; these two reach `reach` times as many. `looks`: at held-out prompts, per `samples`, each after whole
    samplings."""

    samples: int
    reach: int
    looks: int
    quick: bool

    @property
    def steps(self) -> int:
        """Optimiser steps of an online run in which it learns from `samples` answers."""
        return self.samples // BATCH * MINIBATCHES


@dataclass(frozen=True)
class SeedResult:
    """What a seed's pipeline found. `ledgers`: by stage, and as `best_of_n` of the run that sampled and chose. `steps`:
    of online runs, the metrics of each step. `scores`, `sampled`: by method, means of reward, judge and quality over
    held-out prompts, of greedy and of sampled answers; `kl`: by method, from SFT. `accuracy`: of reward models."""

    ledgers: Mapping[str, Ledger]
    steps: Mapping[str, list[dict[str, float]]]
    scores: Mapping[str, dict[str, float]]
    sampled: Mapping[str, dict[str, float]]
    kl: Mapping[str, dict[str, Any]]
    accuracy: Mapping[str, float | None]
    prompts: int
    parameters: int


def import_data(client: httpx.Client, folder: Path, sizes: Sizes) -> list[str]:
    """The demo's datasets, and `pairs`, the first of its preferences. Returns the inputs as `--set` takes them."""
    command = [sys.executable, "-m", "steerboard_workers.synthetic", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    pairs = (folder / "preferences.jsonl").read_text().splitlines(keepends=True)[: sizes.samples // 2]
    (folder / "pairs.jsonl").write_text("".join(pairs))
    kinds = {name: name for name in ("instructions", "preferences", "prompts")} | {"pairs": "preferences"}
    for name, kind in kinds.items():
        with (folder / f"{name}.jsonl").open("rb") as file:
            given = {"kind": kind, "name": name}
            client.post("datasets/import", files={"file": file}, data=given, timeout=_IMPORT).raise_for_status()
    return [f"{name}={name}" for name in kinds]


def recipe_of(sizes: Sizes, seed: int, ppo_lr: float) -> dict[str, Any]:
    """claim.yaml with its numbers of samples, a seed in every stage that has one, and PPO's learning rate."""
    recipe: dict[str, Any] = yaml.safe_load(RECIPE.read_text())
    stages = recipe["stages"]
    for name, stage in stages.items():
        stage.update(_QUICK.get(name, {}) if sizes.quick else {})
        if name != "labelled":
            stage["seed"] = seed
    stages["mixture"]["size"] = sizes.samples
    stages["ppo"]["lr"] = ppo_lr
    for name in ONLINE:
        stages[name] |= {"max_steps": sizes.steps * sizes.reach, "evaluate_every": sizes.steps // sizes.looks}
    return recipe


def swept(recipe: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """The same with PPO alone, at as many samples as DT; stages before it are reused by the whole recipe later."""
    short = copy.deepcopy(dict(recipe))
    short["stages"] = {name: short["stages"][name] for name in _SWEPT}
    short["stages"]["ppo"]["max_steps"] = sizes.steps
    short["inputs"].pop("pairs")
    return short


def run(client: httpx.Client, recipe: Mapping[str, Any], inputs: list[str], says: str) -> dict[str, dict[str, Any]]:
    """Start a recipe and wait. Returns its runs by stage. Raises SystemExit for one that does not succeed."""
    given = [text for text in inputs if text.partition("=")[0] in recipe["inputs"]]
    # JSON is YAML.
    started = client.post("pipelines", json={"text": json.dumps(recipe), "set": given})
    if started.is_error:
        raise SystemExit(f"the recipe was refused: {started.text[:2000]}")
    pipeline, reported = started.json()["id"], set[str]()
    while True:
        runs = client.get(f"pipelines/{pipeline}").raise_for_status().json()["runs"]
        for stage in runs:
            if stage["state"] in _ENDED and stage["name"] not in reported:
                reported.add(stage["name"])
                how = "reused" if stage["reused_from_id"] else f"{stage['device_seconds']:.1f} s"
                say(f"  {says}: {stage['name']} {stage['state']}, {how}")
        failed = [stage for stage in runs if stage["state"] in _ENDED and stage["state"] != "succeeded"]
        if failed:
            raise SystemExit(f"{failed[0]['name']} {failed[0]['state']}: {failed[0]['reason']}")
        if len(reported) == len(runs):
            break
        time.sleep(0.5)
    return {stage["name"]: client.get(f"runs/{stage['id']}").raise_for_status().json() for stage in runs}


def steps_of(client: httpx.Client, detail: Mapping[str, Any]) -> list[dict[str, float]]:
    """The metrics of an online run, step by step."""
    # A reused run has its metrics where the work was done.
    worked = detail["reused_from_id"] or detail["id"]
    query = {"name": _METRICS, "points": 10_000}
    series = client.get(f"runs/{worked}/metrics", params=query).raise_for_status().json()
    by_step: dict[int, dict[str, float]] = {}
    for metric in series:
        for point in metric["points"]:
            by_step.setdefault(point["step"], {})[metric["name"]] = point["value"]
    return [by_step[step] for step in sorted(by_step)]


def outcome(client: httpx.Client, runs: Mapping[str, Mapping[str, Any]]) -> SeedResult:
    """The outcome of a pipeline of the whole recipe, from the API."""
    pipeline = runs["sft"]["pipeline"]["name"]
    reports = {}
    ledgers = {name: Ledger.model_validate(run["ledger"]) for name, run in runs.items()}
    for stage in ("scores", "frontier"):
        reports[stage] = client.get(f"evaluations/{pipeline}.{stage}/report").raise_for_status().json()
    entrants = client.get(f"evaluations/{pipeline}.scores").raise_for_status().json()["entrants"]
    chose = next(entrant["run"]["id"] for entrant in entrants if entrant["name"] == ENTRANTS["best_of_n"])
    ledgers["best_of_n"] = Ledger.model_validate(client.get(f"runs/{chose}").raise_for_status().json()["ledger"])
    methods = {entrant: method for method, entrant in ENTRANTS.items()}
    model = client.get(f"models/{pipeline}.sft").raise_for_status().json()
    return SeedResult(
        ledgers=ledgers,
        steps={name: steps_of(client, runs[name]) for name in ONLINE},
        scores=_means(reports["scores"]),
        sampled=_means(reports["frontier"]),
        kl={
            methods[entrant["entrant"]]: {"value": entrant["kl"]["value"], "kind": entrant["kind"]}
            for entrant in reports["frontier"]["frontier"]["entrants"]
        },
        accuracy={reward["reward_model"]: reward["accuracy"]["value"] for reward in reports["scores"]["rewards"]},
        prompts=reports["scores"]["prompts"],
        parameters=model["info"]["parameters"],
    )


def _means(report: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The means by method. Rewards as the models give them, since those of the curve in training are the same."""
    means: dict[str, dict[str, float]] = {method: {} for method in ENTRANTS}
    by_name = {reward["reward_model"]: reward["raw"] for reward in report["rewards"]}
    for name, source in _SOURCES.items():
        values = {row["entrant"]: row["mean"]["value"] for row in by_name[source]}
        for method, entrant in ENTRANTS.items():
            means[method][name] = values[entrant]
    return means
