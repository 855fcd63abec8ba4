"""Runs that other trainers made, imported to compare with."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tracker_world import PROJECT, TrackerWorld

RUNS = f"{PROJECT}/runs"


def imported(world: TrackerWorld, file: str, content: str | bytes, **form: str) -> Any:
    content = content.encode() if isinstance(content, str) else content
    answer = world.client.post(f"{RUNS}/histories", files={"file": (file, content)}, data=form)
    assert answer.status_code == 201, answer.text
    return answer.json()


def curves(world: TrackerWorld, run: str) -> dict[str, list[tuple[int, float]]]:
    series = world.client.get(f"{RUNS}/{run}/metrics").json()
    return {each["name"]: [(point["step"], point["value"]) for point in each["points"]] for each in series}


def test_the_state_of_a_trainer_becomes_a_run(world: TrackerWorld) -> None:
    state = {
        "log_history": [
            {"epoch": 0.1, "loss": 0.69, "learning_rate": 1e-5, "rewards/accuracies": 0.5, "step": 10},
            {"epoch": 0.1, "eval_loss": 0.68, "eval_rewards/accuracies": 0.6, "step": 10},
            {"epoch": 0.2, "loss": 0.6, "learning_rate": 5e-6, "rewards/margins": 0.2, "step": 20},
            {"epoch": 0.2, "loss": 0.61, "grad_norm": float("nan"), "step": 20},
        ],
        "max_steps": 20,
        "best_model_checkpoint": "/home/someone/out",
    }
    answer = imported(world, "trainer_state.json", json.dumps(state), name="trl-dpo")
    run = answer["run"]
    assert (run["name"], run["kind"], run["state"], answer["not_finite"]) == ("trl-dpo", "history", "succeeded", 1)
    assert run["config"]["settings"] == {"max_steps": 20}
    assert curves(world, "trl-dpo") == {
        "loss": [(10, 0.69), (20, 0.61)],
        "lr": [(10, 1e-5), (20, 5e-6)],
        "pair_accuracy": [(10, 0.5)],
        "eval_loss": [(10, 0.68)],
        "eval_pair_accuracy": [(10, 0.6)],
        "rewards/margins": [(20, 0.2)],
    }
    assert run["summary"]["loss"] == 0.61
    listed = world.client.get(RUNS, params={"q": "trl-dpo"}).json()["items"]
    assert [each["id"] for each in listed] == [run["id"]]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "history.jsonl",
            '{"_step": 0, "_runtime": 3.5, "train/loss": 2}\n{"_step": 1, "train/loss": 1, "note": "x"}\n',
        ),
        ("history.json", '[{"_step": 0, "train/loss": 2}, {"_step": 1, "train/loss": 1.0}]'),
        ("wandb_export.csv", '"Step","dt-3 - train/loss","dt-3 - train/loss__MIN"\n0,2,1\n1,1.0,\n'),
        ("trackio.csv", "step,timestamp,loss\n0,2026-01-01,2\n1,2026-01-01,1\n,2026-01-01,7\n"),
    ],
)
def test_a_table_becomes_a_run(world: TrackerWorld, name: str, content: str) -> None:
    run = imported(world, name, content)["run"]
    assert run["name"] == "history-1"
    assert curves(world, run["id"]) == {"loss": [(0, 2), (1, 1)]}


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", "when,loss\n1,2\n", "no metric at any step"),
        ("a.csv", "step,loss\n1.5,2\n", "instead of a whole number"),
        ("a.csv", "step,loss\n-1,2\n", "instead of a whole number"),
        ("a.csv", "step,a - loss,b - loss\n1,2,3\n", "export one run at a time"),
        ("a.jsonl", '{"step": 1, "loss": 2}\n{"step": 2,\n', "line 2"),
        ("a.jsonl", '{"step": 1, "lo\\u0000ss": 2}\n', "cannot be the name"),
        ("trainer_state.json", '{"log_history": [3]}', "log_history[0]"),
        ("trainer_state.json", '{"log_history": []}', "no metric"),
    ],
)
def test_what_is_no_history_is_refused_and_leaves_nothing(
    world: TrackerWorld, name: str, content: str, says: str
) -> None:
    answer = world.client.post(f"{RUNS}/histories", files={"file": (name, content.encode())})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_history"), answer.text
    assert says in answer.json()["detail"]
    assert world.client.get(RUNS).json()["items"] == []


def test_what_transformers_writes_is_read(world: TrackerWorld, tmp_path: Path) -> None:
    """The real class writes the file, so that its form is not ours."""
    from transformers import TrainerState

    state = TrainerState(global_step=3, max_steps=3)
    state.log_history = [{"loss": 1 / step, "epoch": step / 3, "step": step} for step in (1, 2, 3)]
    state.save_to_json(str(tmp_path / "trainer_state.json"))
    run = imported(world, "trainer_state.json", (tmp_path / "trainer_state.json").read_bytes())["run"]
    assert curves(world, run["id"])["loss"][-1] == (3, pytest.approx(1 / 3))
    assert run["config"]["settings"]["max_steps"] == 3
    assert all(isinstance(value, int | float) and math.isfinite(value) for value in run["config"]["settings"].values())
