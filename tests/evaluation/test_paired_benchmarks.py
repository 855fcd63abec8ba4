"""Two reward models on the same items of a benchmark, from the runs of both to the API and the gate."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest
from evaluation_world import WORDS, EvaluationWorld
from safetensors.torch import load_file, save_file
from scipy.stats import binomtest
from sqlalchemy import select

from steerboard.platform.database import transaction
from steerboard.runs.tables import RunOutput
from steerboard_contracts.report.benchmark import BenchmarkResult

LLMBAR = Path(__file__).parents[3] / "shared" / "data" / "llmbar" / "LLMBar"
PAIRED = "models/reward/benchmarks/paired"
Rows = list[dict[str, Any]]


def rows(n: int = 6, subsets: tuple[str, ...] = ("colours", "fruit")) -> Rows:
    """The first pair of each subset has equal sides, which tie for every model."""
    return [
        {
            "prompt": f"say {word} in {subset}",
            "chosen": f"{word} {word}",
            "rejected": f"{word} {word}" if number == 0 else WORDS[number - 1],
            "source": subset,
        }
        for subset in subsets
        for number, word in enumerate(WORDS[:n])
    ]


@pytest.fixture
def world(world: EvaluationWorld, folders: Path) -> EvaluationWorld:
    """A world with `rival`, which gives the opposite of each reward that `reward` gives."""
    if not (folders / "rival").exists():
        shutil.copytree(folders / "reward", folders / "rival")
        weights = load_file(folders / "rival" / "model.safetensors")
        weights["score.weight"] = -weights["score.weight"]
        save_file(weights, folders / "rival" / "model.safetensors", metadata={"format": "pt"})
    world.register("rival", "rival")
    return world


def benchmark(world: EvaluationWorld, model: str, dataset: str) -> str:
    """The id of a finished run."""
    started = world.post("runs", {"config": {"run": "benchmark"}, "inputs": {"reward": model, "pairs": dataset}})
    assert world.work_off() == ["benchmark"]
    return str(started["id"])


def refused(world: EvaluationWorld, **asked: str) -> str:
    return str(world.get(PAIRED, status=409, other="rival", **asked)["code"])


def test_two_models_are_compared_on_each_pair_by_subset_and_in_all(world: EvaluationWorld) -> None:
    world.dataset("bench", rows(), kind="preferences")
    runs = [benchmark(world, model, "bench") for model in ("reward", "rival")]
    ours, theirs = (world.get(f"models/{model}/benchmarks")[0]["result"] for model in ("reward", "rival"))
    (paired,) = world.get(PAIRED, other="rival")
    assert (paired["dataset"], paired["items"]) == ("bench", 12)
    assert [paired[side] for side in "ab"] == [
        {"model": "reward", "run_id": runs[0]},
        {"model": "rival", "run_id": runs[1]},
    ]
    every = paired["every"]
    assert (every["a"], every["b"]) == (ours["accuracy"]["value"], theirs["accuracy"]["value"])
    assert (every["only_a"], every["only_b"]) == (round(12 * every["a"]), 10 - round(12 * every["a"]))
    assert every["p"] == pytest.approx(binomtest(every["only_a"], 10).pvalue)
    difference = every["difference"]
    assert difference["value"] == pytest.approx(every["a"] - every["b"])
    assert difference["low"] < difference["value"] < difference["high"]
    by_subset = {source["source"]: source["accuracy"]["value"] for source in ours["sources"]}
    assert {subset["name"]: subset["a"] for subset in paired["subsets"]} == by_subset
    assert [(subset["n"], subset["only_a"] + subset["only_b"]) for subset in paired["subsets"]] == [(6, 5), (6, 5)]
    smaller, larger = sorted(paired["subsets"], key=lambda subset: float(subset["p"]))
    assert smaller["p_holm"] == pytest.approx(min(1, 2 * smaller["p"]))
    assert larger["p_holm"] == pytest.approx(max(smaller["p_holm"], larger["p"]))
    (turned,) = world.get("models/rival/benchmarks/paired", other="reward", dataset="bench")
    assert (turned["every"]["only_a"], turned["every"]["only_b"]) == (every["only_b"], every["only_a"])


def test_what_each_item_gave_is_kept_with_the_run_and_not_shown(world: EvaluationWorld) -> None:
    world.dataset("bench", rows(), kind="preferences")
    run = benchmark(world, "reward", "bench")
    (output,) = world.get(f"runs/{run}")["outputs"]
    assert output["document"]["items"] is None
    assert world.get("models/reward/benchmarks")[0]["result"]["items"] is None
    with transaction(world.sessions) as session:
        kept = session.scalars(select(RunOutput.document).where(RunOutput.run_id == uuid.UUID(run))).one()
    items = BenchmarkResult.model_validate(kept).items
    assert items is not None
    assert (items.n, len(set(items.hashes)), sum(items.right) / 12) == (12, 12, output["document"]["accuracy"]["value"])


def test_the_same_pairs_in_another_order_and_dataset_are_the_same_items(world: EvaluationWorld) -> None:
    world.dataset("bench", rows(), kind="preferences")
    world.dataset("turned", rows()[::-1], kind="preferences")
    benchmark(world, "reward", "bench")
    benchmark(world, "rival", "turned")
    (paired,) = world.get(PAIRED, other="rival")
    assert (paired["dataset"], paired["every"]["n"]) == ("bench", 12)
    assert paired["every"]["only_a"] + paired["every"]["only_b"] == 10


def test_models_without_a_benchmark_on_the_same_items_are_not_compared(world: EvaluationWorld) -> None:
    world.dataset("bench", rows(), kind="preferences")
    world.dataset("newer", rows(5), kind="preferences")
    world.dataset("other", rows(subsets=("animals",)), kind="preferences")
    assert refused(world) == "no_benchmark"
    run = benchmark(world, "reward", "bench")
    problem = world.get(PAIRED, status=409, other="rival")
    assert (problem["code"], problem["detail"]) == ("no_benchmark", "rival has no finished benchmark")
    benchmark(world, "rival", "other")
    assert refused(world) == "no_shared_items"
    benchmark(world, "rival", "newer")
    problem = world.get(PAIRED, status=409, other="rival")
    assert problem["code"] == "other_benchmark_version"
    assert "10 items are the same, of 12 and 10" in problem["detail"]
    assert refused(world, dataset="other") == "no_benchmark"
    benchmark(world, "rival", "bench")
    assert len(world.get(PAIRED, other="rival")) == 1
    with transaction(world.sessions) as session:
        kept = session.scalars(select(RunOutput).where(RunOutput.run_id == uuid.UUID(run))).one()
        # As earlier versions kept it.
        kept.document = {name: value for name, value in (kept.document or {}).items() if name != "items"}
    assert refused(world) == "no_items_kept"
    assert world.get("models/reward/benchmarks")[0]["result"]["pairs"] == 12


def test_prompts_with_several_answers_are_compared_by_the_share_that_is_won(world: EvaluationWorld) -> None:
    answers = [
        {"prompt": f"say {word}", "response": response, "reward": float(grade), "group": group, "candidate": place}
        for group, word in enumerate(WORDS[:5])
        for place, (response, grade) in enumerate(((f"{word} {word}", 1), ("house", 0), (f"no {word}", 0)))
    ]
    world.dataset("answers", answers, kind="labelled")
    benchmark(world, "reward", "answers")
    benchmark(world, "rival", "answers")
    (paired,) = world.get(PAIRED, other="rival")
    assert (paired["items"], paired["every"]["n"]) == (5, 5)
    assert [(subset["name"], subset["n"]) for subset in paired["subsets"]] == [("imported", 5)]
    results = [world.get(f"models/{model}/benchmarks")[0]["result"] for model in ("reward", "rival")]
    shares = [result["accuracy"]["value"] for result in results]
    assert [paired["every"]["a"], paired["every"]["b"]] == pytest.approx(shares)


def test_published_pairs_are_compared_by_their_subsets(world: EvaluationWorld) -> None:
    if not LLMBAR.is_dir():
        pytest.skip(f"LLMBar is not at {LLMBAR}")
    published = [
        {
            "prompt": row["input"],
            "chosen": row["output_1" if row["label"] == "1" else "output_2"],
            "rejected": row["output_2" if row["label"] == "1" else "output_1"],
            "source": f"llmbar-adver-{path.parent.name}",
        }
        for path in sorted(LLMBAR.glob("Adversarial/*/dataset.json"))
        for row in json.loads(path.read_text())[:12]
    ]
    world.dataset("llmbar", published, kind="preferences")
    benchmark(world, "reward", "llmbar")
    benchmark(world, "rival", "llmbar")
    (paired,) = world.get(PAIRED, other="rival")
    assert {subset["name"]: subset["n"] for subset in paired["subsets"]} == {
        f"llmbar-adver-{name}": 12 for name in ("GPTInst", "GPTOut", "Manual", "Neighbor")
    }
    assert (paired["sections"], paired["overall"]) == ([], None)
    assert sum(subset["only_a"] for subset in paired["subsets"]) == paired["every"]["only_a"]


def test_a_gate_compares_a_reward_model_with_any_other_on_a_benchmark(world: EvaluationWorld) -> None:
    """Its rule fails for the worse of the two, and decides nothing without both results."""
    world.dataset("bench", rows(), kind="preferences")
    world.register("twin", "reward")
    world.evaluate("eval", rewards=["reward"])
    world.work_off()

    def held(**rule: Any) -> dict[str, Any]:
        given = {"metric": "benchmark_accuracy", "benchmark": "bench", "source": "reward", **rule}
        (result,) = world.post("evaluations/eval/gate", {"rules": [given]}, status=200)["rules"]
        return dict(result)

    assert held(not_below="rival")["why"] == "reward has no finished benchmark on bench"
    benchmark(world, "reward", "bench")
    benchmark(world, "rival", "bench")
    (paired,) = world.get(PAIRED, other="rival")
    every = paired["every"]
    below = held(not_below="rival")
    assert below["text"] == "benchmark_accuracy on bench vs rival by reward reward, ci_high >= 0"
    assert below["value"] == every["difference"]["high"]
    assert below["outcome"] == ("pass" if every["difference"]["high"] >= 0 else "fail")
    assert held(vs="rival", op=">", value=1)["value"] == every["difference"]["value"]
    assert held(vs="rival", stat="p", op=">=", value=0)["value"] == every["p"]
    assert held(min=0.0)["value"] == every["a"]
    assert held(not_below="rival", min_n=13)["outcome"] == "invalid"
    assert held(not_below="nobody")["why"] == "there is no model 'nobody'"
    assert held(not_below="@production-reward")["outcome"] == "invalid"
    assert held(not_below="rival", benchmark="nothing")["why"] == "there is no dataset 'nothing'"
    assert held(not_below="twin")["why"] == "the evaluation has no reward model other than twin"
