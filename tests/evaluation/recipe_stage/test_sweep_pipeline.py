"""A sweep over HTTP: what does not differ runs once, one evaluation compares the variants, and the best is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluation_world import WORDS, EvaluationWorld
from test_run_gated import worker, written

from support.processes.command_line import Steerboard, steerboard, url

__all__ = ["steerboard", "url", "worker"]

RECIPE = """
name: rates
inputs:
  base: {type: model}
  reward: {type: model}
  things: {type: dataset, kind: instructions}
sweep:
  vary:
    tuned.lr: [1.0e-9, 0.3]
  metric: report
stages:
  mixed: {run: mix, parts: [$things], size: 80}
  tuned: {run: train, method: sft, model: $base, data: mixed, lr: 1.0e-3, batch: 4, max_steps: 4, warmup_ratio: 0.0}
  report:
    run: evaluate
    entrants: [$base, tuned]
    rewards: [$reward]
    data: $things
    decoding: {temperature: 0.0, max_new_tokens: 6}
"""


@pytest.fixture
def things(world: EvaluationWorld) -> EvaluationWorld:
    world.register("base", "base")
    rows = [{"prompt": f"say {word} {number}", "response": word} for word in WORDS for number in range(20)]
    world.dataset("things", rows, kind="instructions")
    return world


def rewards(world: EvaluationWorld, entrant: str) -> list[float]:
    prompts = world.get("evaluations/rates-1.report/prompts", limit=100)["items"]
    return [
        response["rewards"]["reward"]
        for prompt in prompts
        for response in prompt["responses"]
        if response["entrant"] == entrant
    ]


def test_a_sweep_trains_each_variant_and_compares_them_on_the_same_prompts(things: EvaluationWorld) -> None:
    body: dict[str, Any] = {"text": RECIPE, "set": ["base=base", "reward=reward", "things=things"]}
    made = things.post("pipelines", body)
    assert [run["name"] for run in made["runs"]] == ["mixed", "tuned-1", "tuned-2", "report"]
    before = things.get("pipelines/rates-1/sweep")
    assert [row["state"] for row in before["variants"]] == ["queued", "queued"]
    assert before["verdict"] == "No figures yet: report is pending."
    done = things.work_off()
    assert (done.count("mix"), done.count("train"), done.count("answer")) == (1, 2, 3)
    assert things.get("pipelines/rates-1")["state"] == "succeeded"

    sweep = things.get("pipelines/rates-1/sweep")
    by_variant = [rewards(things, f"tuned-{n}") for n in (1, 2)]
    means = [float(np.mean(rewards_of)) for rewards_of in by_variant]
    assert [row["figure"]["value"] for row in sweep["variants"]] == pytest.approx(means)
    assert sweep["best"] == 1 + int(np.argmax(means))
    assert [row["values"] for row in sweep["variants"]] == [{"tuned.lr": 1e-9}, {"tuned.lr": 0.3}]
    other = sweep["variants"][2 - sweep["best"]]
    apart = np.array(by_variant[sweep["best"] - 1]) - np.array(by_variant[2 - sweep["best"]])
    assert other["behind"]["value"] == pytest.approx(apart.mean())
    assert sweep["prompts"] == len(apart) > 5
    assert (sweep["units"], sweep["figure"]) == ("raw", "mean reward by reward")
    assert f"Variant {sweep['best']} (tuned.lr " in sweep["verdict"]
    assert [row["device_seconds"] for row in sweep["variants"]] == [1.0, 1.0]

    # An equal sweep takes over every stage, and with them the evaluation.
    things.post("pipelines", body)
    things.work_off()
    again = things.get("pipelines/rates-2/sweep")
    assert [row["figure"] for row in again["variants"]] == [row["figure"] for row in sweep["variants"]]


@pytest.mark.usefixtures("worker")
def test_the_report_file_and_the_terminal_say_which_variant_is_best(
    things: EvaluationWorld, steerboard: Steerboard, url: str, token: str, tmp_path: Path
) -> None:
    recipe, report = written(tmp_path, RECIPE), tmp_path / "report.json"
    given = [part for setting in ("base=base", "reward=reward", "things=things") for part in ("--set", setting)]
    done = steerboard(url, token, "run", recipe, *given, "--wait", "--report", str(report))
    assert done.returncode == 0, done.stderr
    sweep = things.get("pipelines/rates-1/sweep")
    assert sweep["verdict"].startswith("Variant ")
    assert json.loads(report.read_text())["sweep"] == sweep
    assert sweep["verdict"][:60] in done.stdout
    assert "\nrates-1\n" in done.stdout, "the title of the report"


def test_a_pipeline_without_a_sweep_has_none_and_strangers_read_none(things: EvaluationWorld) -> None:
    given = ["base=base", "reward=reward", "things=things"]
    things.post("pipelines", {"text": RECIPE, "set": [*given, "sweep=null"]})
    assert things.get("pipelines/rates-1/sweep", status=404)["code"] == "no_sweep"
    things.post("pipelines", {"text": RECIPE, "set": given})
    answer = things.client.get(things.url("pipelines/rates-2/sweep"), headers={"Authorization": "Bearer nobody"})
    assert answer.status_code == 401
    refused = things.post("pipelines", {"text": RECIPE.replace("0.3]", "-1.0]"), "set": given}, status=422)
    assert [error["location"] for error in refused["errors"]] == ["stages.tuned-2.lr (line 9)"]
