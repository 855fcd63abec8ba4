"""A model's evaluations: its own rows of every report that it was in."""

from __future__ import annotations

from typing import Any

from api_world import EMPTY_REPORT, ApiWorld

RECIPE = """\
name: compare
inputs:
  base: {type: model}
  data: {type: dataset, kind: preferences}
stages:
  reward: {run: train, method: reward_model, model: $base, data: $data}
  chosen: {run: mix, parts: [{data: $data, side: chosen}], size: 10}
  sft: {run: train, method: sft, model: $base, data: chosen}
  report: {run: evaluate, entrants: [$base, {model: sft, scores: [-1.0, 1.0]}], rewards: [reward], data: $data}
"""


def row(entrant: str, score: float | None, reward: float) -> dict[str, Any]:
    return {
        "method": "sft",
        "entrant": entrant,
        "score": score,
        "n": 3,
        "reward_mean": reward,
        "reward_low": reward - 1,
        "reward_high": reward + 1,
        "length_mean": 5.0,
        "truncated": 0.0,
        "distinct_1": 0.5,
        "distinct_2": 0.5,
        "win_rate_vs_baseline": 0.4,
        "independent_win_rate_vs_baseline": None,
        "device_seconds": 1.0,
    }


def evaluated(world: ApiWorld, names: tuple[str, str], stages: int = 3) -> Any:
    """One pipeline to its end; the report calls its entrants by `names`."""
    pipeline = world.start(text=RECIPE)
    for _ in range(stages):
        world.work()
    methods = [row(names[0], None, 0.0), row(names[1], -1.0, 1.0), row(names[1], 1.0, 2.0)]
    world.kept_report(f"{pipeline['name']}.report", {**EMPTY_REPORT, "methods": methods})
    return pipeline


def model_of(world: ApiWorld, pipeline: Any, stage: str) -> str:
    run = world.get(f"runs/{pipeline['name']}.{stage}")
    return next(output["id"] for output in run["outputs"] if output["type"] == "model")


def test_a_model_has_its_rows_of_every_report_newest_first(world: ApiWorld) -> None:
    first = evaluated(world, ("tiny", "sft"))
    second = evaluated(world, ("tiny", "sft"), stages=0)  # all that was trained is taken over from the first
    of_base = world.get("models/tiny/evaluations")
    assert [evaluation["pipeline"]["name"] for evaluation in of_base] == [second["name"], first["name"]]
    assert [[r["reward"] for r in evaluation["rows"]] for evaluation in of_base] == [[0.0], [0.0]]
    again, of_sft = world.get(f"models/{model_of(world, first, 'sft')}/evaluations")
    assert again["rows"] == of_sft["rows"]
    assert [(r["score"], r["reward"], r["reward_low"], r["win_rate_vs_baseline"]) for r in of_sft["rows"]] == [
        (-1.0, 1.0, 0.0, 0.4),
        (1.0, 2.0, 1.0, 0.4),
    ]
    assert of_sft["prompts"] == 3
    assert of_sft["baseline"] == "SFT"
    assert of_sft["run_id"] == world.get(f"runs/{first['name']}.report")["id"]


def test_rows_are_found_by_place_where_the_report_has_other_names(world: ApiWorld) -> None:
    pipeline = evaluated(world, ("other-1.base", "other-1.sft"))
    (of_sft,) = world.get(f"models/{model_of(world, pipeline, 'sft')}/evaluations")
    assert [r["reward"] for r in of_sft["rows"]] == [1.0, 2.0]


def test_the_judge_and_a_model_without_a_finished_evaluation_have_none(world: ApiWorld) -> None:
    pipeline = evaluated(world, ("tiny", "sft"))
    assert world.get(f"models/{model_of(world, pipeline, 'reward')}/evaluations") == []
    world.model("lonely")
    assert world.get("models/lonely/evaluations") == []
    assert world.get("models/nobody/evaluations", status=404)["code"] == "unknown_model"
