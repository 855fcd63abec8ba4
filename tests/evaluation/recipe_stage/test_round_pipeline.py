"""Rounds over HTTP: a judge that falls ends them, and the timeline shows what was measured of each."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from evaluation_world import WORDS, EvaluationWorld
from safetensors.torch import load_file, save_file

RECIPE = """
name: loop
inputs:
  policy: {type: model}
  teacher: {type: model}
  referee: {type: model}
  things: {type: dataset, kind: instructions}
rounds: {count: 3, stop: {judge: $referee, prompts: 20, decoding: {temperature: 0.0, max_new_tokens: 6}}}
round:
  previous: $policy
  stages:
    answers: {run: generate, model: previous, data: $things, decoding: {temperature: 1.0, n: 3, max_new_tokens: 6}}
    scored: {run: score, data: answers, reward: $teacher}
    best: {run: select, data: scored}
    tuned: {run: train, method: sft, model: previous, data: best, lr: 1.0e-9, batch: 4, max_steps: 2, warmup_ratio: 0.0}
stages:
  all: {run: mix, parts: [{data: best, share: 0.3}], size: 40}
  last: {run: train, method: sft, model: tuned, data: best, lr: 1.0e-9, batch: 4, max_steps: 1}
  report:
    run: evaluate
    entrants: [$policy, tuned, last]
    rewards: [$teacher, $referee]
    prompts: 20
    decoding: {temperature: 0.0, max_new_tokens: 6}
"""
INPUTS = ["policy=sft", "teacher=reward", "things=things"]
# Round 2 breaks its policy, so that its answers differ from those of round 1 on every prompt.
BROKEN = ["tuned-2.lr=0.5", "tuned-2.max_steps=6"]


@pytest.fixture
def things(world: EvaluationWorld) -> EvaluationWorld:
    rows = [{"prompt": f"say {word} {number}", "response": word} for word in WORDS for number in range(20)]
    world.dataset("things", rows, kind="instructions")
    for name, sign in (("fan", 1.0), ("critic", -1.0)):
        _judge(world, name, sign)
    return world


def _judge(world: EvaluationWorld, name: str, sign: float) -> None:
    """Other weights than the teacher's; the critic's rewards are the fan's with the other sign."""
    source, folder = world.folders / "reward", world.folders / name
    folder.mkdir(exist_ok=True)
    for file in source.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    weights = load_file(folder / "model.safetensors")
    generator = torch.Generator().manual_seed(7)
    head = torch.randn(weights["score.weight"].shape, generator=generator)
    save_file({**weights, "score.weight": sign * head}, folder / "model.safetensors", {"format": "pt"})
    world.register(name, name)


def start(world: EvaluationWorld, *settings: str, text: str = RECIPE, status: int = 201) -> Any:
    return world.post("pipelines", {"text": text, "set": [*INPUTS, *settings]}, status=status)


def states(world: EvaluationWorld, pipeline: str) -> dict[str, str]:
    return {run["name"]: run["state"] for run in world.get(f"pipelines/{pipeline}")["runs"]}


@pytest.mark.long
def test_a_judge_that_falls_ends_the_rounds_and_the_timeline_shows_what_was_measured(things: EvaluationWorld) -> None:
    # What one of the two calls a fall, the other calls a rise.
    for judge in ("fan", "critic"):
        start(things, f"referee={judge}", *BROKEN)
        things.work_off()
        assert things.get("pipelines/loop-1")["state"] == "succeeded"
    rounds = {n: things.get(f"pipelines/loop-{n}/rounds") for n in (1, 2)}
    assert sorted(str(timeline["stopped_after"]) for timeline in rounds.values()) == ["2", "None"]
    stopped = next(n for n, timeline in rounds.items() if timeline["stopped_after"])
    whole = rounds[3 - stopped]
    check_whole(whole)
    check_stopped(things, f"loop-{stopped}", rounds[stopped])

    # An equal pipeline takes over every stage, and the decision with them.
    start(things, f"referee={rounds[stopped]['rounds'][0]['decision']['judge']}", *BROKEN)
    assert things.work_off() == []
    again = things.get("pipelines/loop-3/rounds")
    assert [row["decision"] for row in again["rounds"]] == [row["decision"] for row in rounds[stopped]["rounds"]]
    assert states(things, "loop-3") == states(things, f"loop-{stopped}")


def check_whole(timeline: dict[str, Any]) -> None:
    assert (timeline["result"], timeline["start"]) == (3, "sft")
    # The second round broke the policy, so that its answers are none of those before.
    first, second, third = (row["answers"] for row in timeline["rounds"])
    assert (first["stage"], first["independent"]) == ("report", True)
    assert first["against_previous"]["value"] == 0.5
    assert second["against_previous"]["value"] == second["against_start"]["value"] > 0.5
    assert second["against_start"]["low"] < second["against_start"]["value"] < second["against_start"]["high"]
    assert third["against_previous"]["value"] == 0.5
    for row in timeline["rounds"]:
        pairs = row["selection"]
        assert pairs["kept_groups"] + sum(pairs["dropped"].values()) == pairs["groups"] > 10
        assert pairs["best"]["value"] > pairs["mean"]["value"]
        assert pairs["reward"].startswith("reward")
        # The four stages of a round, and its check, whose parts are two or three answers and their rewards.
        assert row["cost"]["device_seconds"] >= 4
        assert 0 < row["cost"]["sampled_tokens"] <= 6 * 3 * pairs["groups"]
        assert row["cost"]["trained_tokens"] > 0
        assert row["answers"]["tokens"]["value"] <= 6


def check_stopped(world: EvaluationWorld, pipeline: str, timeline: dict[str, Any]) -> None:
    assert (timeline["stopped_after"], timeline["result"]) == (2, 1)
    assert [row["state"] for row in timeline["rounds"]] == ["succeeded", "succeeded", "skipped"]
    assert [row["kept"] for row in timeline["rounds"]] == [True, False, None]
    decision = timeline["rounds"][1]["decision"]
    assert decision["after"]["value"] < decision["before"]["value"]
    assert decision["difference"]["value"] == pytest.approx(decision["after"]["value"] - decision["before"]["value"])
    assert decision["p"] < 0.05
    reason = timeline["rounds"][2]["reason"]
    assert reason.startswith(f"not run: after round 2, {decision['judge']} fell from ")
    runs = states(world, pipeline)
    assert {name for name, state in runs.items() if state == "skipped"} == set(timeline["rounds"][2]["stages"])
    assert set(runs.values()) == {"succeeded", "skipped"}
    inputs = {input_["name"]: input_["label"] for input_ in world.get(f"runs/{pipeline}.last")["inputs"]}
    assert (inputs["model"], inputs["data"]) == ("tuned-1", "best-1")
    names = [row["name"] for row in world.get(f"pipelines/{pipeline}/report")["methods"]]
    assert names == ["sft", "tuned-1", "tuned-2", "last"]


def test_a_pipeline_without_rounds_has_no_timeline_and_one_that_has_not_begun_measured_nothing(
    things: EvaluationWorld,
) -> None:
    start(things, "referee=fan")
    rounds = things.get("pipelines/loop-1/rounds")
    assert [row["state"] for row in rounds["rounds"]] == ["running", "queued", "queued"] or [
        row["state"] for row in rounds["rounds"]
    ] == ["queued"] * 3
    assert all(row["answers"] is None and row["selection"] is None for row in rounds["rounds"])
    assert rounds["verdict"] == "0 of 3 rounds have been run so far."
    plain = {
        "text": "name: one\nstages: {made: {run: generate, model: $m, prompts: [Hi]}}\ninputs: {m: {type: model}}\n"
    }
    things.post("pipelines", {**plain, "set": ["m=sft"]})
    assert things.get("pipelines/one-1/rounds", status=404)["code"] == "no_rounds"


def test_the_judge_of_the_stop_rule_is_no_model_that_the_rounds_learn_from(things: EvaluationWorld) -> None:
    refused = start(things, "referee=reward", status=422)
    (fault,) = refused["errors"]
    assert fault["location"] == "rounds.stop.judge (line 8)"
    assert fault["message"].startswith(
        "`$referee` is read by `scored-1`, so that the rounds may learn from it; name a "
    )
