"""A reward model is benchmarked: from the file of the benchmark to the model's page and the report."""

from __future__ import annotations

from typing import Any

import pytest
from evaluation_world import WORDS, EvaluationWorld

BENCHMARK = {"config": {"run": "benchmark"}, "inputs": {"reward": "reward", "pairs": "bench"}}


def bench_rows() -> list[dict[str, Any]]:
    """Rows as RewardBench publishes them."""
    return [
        {
            "id": number,
            "prompt": f"say {word} {number}",
            "chosen": f"{word} {word}",
            "rejected": f"{word} {word}" if number == 0 else "house",
            "chosen_model": "a",
            "rejected_model": "b",
            "subset": subset,
        }
        for number, word in enumerate(WORDS[:4])
        for subset in ("alpacaeval-easy", "my-own")
    ]


@pytest.fixture
def bench(world: EvaluationWorld) -> EvaluationWorld:
    world.dataset("bench", bench_rows(), kind="preferences")
    return world


def documents(run: dict[str, Any]) -> Any:
    (output,) = run["outputs"]
    assert (output["type"], output["id"]) == ("benchmark", None)
    return output["document"]


def test_a_benchmark_ends_with_a_result_on_the_run_and_the_model(bench: EvaluationWorld) -> None:
    started = bench.post("runs", BENCHMARK)
    assert (started["name"], started["state"]) == ("benchmark-1", "queued")
    assert bench.get("models/reward/benchmarks") == []
    assert bench.work_off() == ["benchmark"]
    run = bench.get("runs/benchmark-1")
    result = documents(run)
    assert (result["pairs"], result["ties"], result["accuracy"]["n"]) == (8, 2, 8)
    assert {source["source"]: (source["accuracy"]["n"], source["ties"]) for source in result["sources"]} == {
        "alpacaeval-easy": (4, 1),
        "my-own": (4, 1),
    }
    # The texts are the same for each source; a section of one subset is that subset.
    assert result["rewardbench"]["sections"]["Chat"] == result["accuracy"]["value"]
    assert (result["rewardbench"]["overall"], result["rewardbench"]["unknown"]) == (None, ["my-own"])
    assert (run["summary"]["pairs"], run["summary"]["accuracy"]) == (8, result["accuracy"]["value"])
    (benchmark,) = bench.get("models/reward/benchmarks")
    assert (benchmark["run_id"], benchmark["dataset"], benchmark["result"]) == (run["id"], "bench", result)
    assert bench.get("models/sft/benchmarks") == []
    assert bench.get("models/nobody/benchmarks", status=404)["code"] == "unknown_model"


def test_an_equal_run_takes_the_result_over_also_of_the_same_weights_under_another_name(bench: EvaluationWorld) -> None:
    bench.post("runs", BENCHMARK)
    bench.work_off()
    bench.register("twin", "reward")
    bench.post("runs", {**BENCHMARK, "inputs": {"reward": "twin", "pairs": "bench"}})
    assert bench.work_off() == []
    again = bench.get("runs/benchmark-2")
    assert (again["state"], again["reason_code"]) == ("succeeded", "reused")
    assert documents(again) == documents(bench.get("runs/benchmark-1"))
    ids = [bench.get(f"runs/benchmark-{number}")["id"] for number in (2, 1)]
    assert [benchmark["run_id"] for benchmark in bench.get("models/twin/benchmarks")] == ids
    assert [benchmark["run_id"] for benchmark in bench.get("models/reward/benchmarks", limit=1)] == ids[:1]


def test_wrong_inputs_are_refused_by_field(bench: EvaluationWorld) -> None:
    bench.dataset("questions", [{"prompt": "say red"}])
    inputs = {"reward": "sft", "pairs": "questions"}
    problem = bench.post("runs", {"config": {"run": "benchmark", "limit": 3}, "inputs": inputs}, status=422)
    assert problem["code"] == "invalid_run"
    messages = {error["location"]: error["message"] for error in problem["errors"]}
    assert set(messages) == {"config.limit", "inputs.reward", "inputs.pairs"}
    assert "of role preference or reward; `sft` is a model of role sft" in messages["inputs.reward"]
    assert "of kind labelled or preferences; `questions` is a dataset of kind prompts" in messages["inputs.pairs"]
    missing = bench.post("runs", {"config": {"run": "benchmark"}}, status=422)
    assert [error["location"] for error in missing["errors"]] == ["inputs.reward", "inputs.pairs"]


def test_labelled_answers_need_groups(bench: EvaluationWorld) -> None:
    rows = [{"prompt": f"say {word}", "response": word, "reward": float(len(word))} for word in WORDS[:4]]
    bench.dataset("alone", rows, kind="labelled")
    problem = bench.post("runs", {**BENCHMARK, "inputs": {"reward": "reward", "pairs": "alone"}}, status=422)
    assert [(error["location"], error["message"][:25]) for error in problem["errors"]] == [
        ("inputs.pairs", "needs rows with `group`; ")
    ]
    grouped = [{**row, "group": 0, "candidate": place, "prompt": "say red"} for place, row in enumerate(rows)]
    # Two words have the most letters.
    bench.dataset("grouped", grouped, kind="labelled")
    bench.post("runs", {**BENCHMARK, "inputs": {"reward": "reward", "pairs": "grouped"}})
    assert bench.work_off() == ["benchmark"]
    (benchmark,) = bench.get("models/reward/benchmarks")
    assert (benchmark["result"]["prompts"], benchmark["result"]["chance"]) == (1, 0.5)


def test_the_form_has_a_default_with_an_explanation_for_every_field(world: EvaluationWorld) -> None:
    (kind,) = world.get("schemas/benchmark")
    fields = kind["config_schema"]["properties"]
    assert set(fields) == {"run", "batch_tokens", "precision", "engine", "vllm"}
    assert all(field["description"] and "default" in field for field in fields.values())
    assert [(input_["name"], input_["allowed"]) for input_ in kind["inputs"]] == [
        ("reward", ["preference", "reward"]),
        ("pairs", ["labelled", "preferences"]),
    ]


def test_a_recipe_benchmarks_what_it_names(bench: EvaluationWorld) -> None:
    recipe = """
name: bench
inputs:
  judge: {type: model}
  pairs: {type: dataset, kind: preferences}
stages:
  benchmark: {run: benchmark, reward: $judge, pairs: $pairs}
"""
    made = bench.post("pipelines", {"text": recipe, "set": ["judge=reward", "pairs=bench"]})
    assert bench.work_off() == ["benchmark"]
    assert documents(bench.get(f"runs/{made['name']}.benchmark"))["pairs"] == 8
    assert len(bench.get("models/reward/benchmarks")) == 1


def test_a_report_has_the_newest_on_each_dataset_also_one_that_came_after_it(bench: EvaluationWorld) -> None:
    bench.evaluate("eval", rewards=["reward"])
    bench.work_off()
    assert bench.get("evaluations/eval/report")["rewards"][0]["benchmarks"] == []
    bench.post("runs", BENCHMARK)
    bench.post("runs", {**BENCHMARK, "reuse": False})
    bench.dataset("other", bench_rows()[:4], kind="preferences")
    bench.post("runs", {**BENCHMARK, "inputs": {"reward": "reward", "pairs": "other"}})
    bench.work_off()
    shown = bench.get("evaluations/eval/report")["rewards"][0]["benchmarks"]
    assert [(benchmark["dataset"], benchmark["run_id"]) for benchmark in shown] == [
        ("other", bench.get("runs/benchmark-3")["id"]),
        ("bench", bench.get("runs/benchmark-2")["id"]),
    ]
    assert shown[1]["result"] == documents(bench.get("runs/benchmark-2"))
    # One that is computed now has the same.
    bench.evaluate("later", rewards=["reward"])
    bench.work_off()
    assert bench.get("evaluations/later/report")["rewards"][0]["benchmarks"] == shown


def test_a_benchmark_that_failed_says_what_a_resumed_one_would_keep(bench: EvaluationWorld) -> None:
    bench.post("runs", BENCHMARK)
    bench.fail_next("non_finite_reward")
    run = bench.get("runs/benchmark-1")
    assert run["resumable"]
    assert run["resume_hint"].startswith("Continues after the finished rows")
    assert bench.get("models/reward/benchmarks") == []
