"""Runs in TensorBoard, Trackio and W&B, read back from what these wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tracker_world import TrackerWorld

from steerboard.trackers.exporting import due
from support.tracked_points import Points, of_tensorboard, of_trackio, of_wandb, texts_of_tensorboard

STEPS = range(4)
EXPECTED = {
    "loss": [(0, 1.0), (1, 0.5), (2, 0.33333), (3, 0.25)],
    "eval_loss": [(0, 2.0), (2, 2.0)],
}
FILES: dict[str, dict[str, Any]] = {"tensorboard": {}, "trackio": {}, "wandb": {"mode": "offline"}}


def points_in(kind: str, folder: str) -> Points:
    exported = {
        "tensorboard": of_tensorboard,
        "trackio": lambda path: of_trackio(path)[0],
        "wandb": lambda path: of_wandb(path)[0],
    }[kind](Path(folder))
    return {name: points for name, points in exported.items() if name in EXPECTED}


@pytest.mark.parametrize(
    "kind", ["tensorboard", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("trackio", "wandb"))]
)
def test_each_step_is_in_the_tracker_once_although_the_exporter_died_before_it_noted_it(
    world: TrackerWorld, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tracker(kind, **FILES[kind])
    run = world.done(*STEPS)
    with monkeypatch.context() as patch:
        # The tracker has taken it all; then the process ends, as by kill -9.
        patch.setattr(due, "note_written", lambda *_: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            world.export()
    assert world.exports(run)[0]["step"] is None
    world.export()
    (export,) = world.exports(run)
    assert (export["step"], export["complete"], export["last_error"]) == (3, True, None)
    assert points_in(kind, export["folder"]) == EXPECTED


def test_a_run_that_goes_on_is_in_tensorboard_step_by_step(world: TrackerWorld) -> None:
    world.tracker("tensorboard")
    run, claim = world.begin()
    with world.exporting():
        world.log(claim, 0, 1, 2)
        # Other metrics of step 2 may follow.
        export = world.until_exported(run, 1)
        assert of_tensorboard(Path(export["folder"]))["loss"] == EXPECTED["loss"][:2]
        world.log(claim, 3)
        world.until_exported(run, 2)
        model = world.give_output(run)
        world.succeed(claim)
        world.until_exported(run, 3, complete=True)
    folder = Path(export["folder"])
    assert {name: of_tensorboard(folder)[name] for name in EXPECTED} == EXPECTED
    texts = texts_of_tensorboard(folder)
    assert f"https://steerboard.example/p/default/runs/{run}" in texts["steerboard/run"]
    assert "| seed |" in texts["steerboard/settings"]
    assert "/p/default/models/model-" in texts["steerboard/result"]
    assert world.shown()["last_export_at"]
    assert model


def test_a_resumed_run_is_exported_on(world: TrackerWorld) -> None:
    world.tracker("tensorboard")
    run, claim = world.begin()
    world.log(claim, 0, 1)
    world.fail(claim)
    world.export()
    assert world.exports(run)[0]["complete"]
    assert world.client.post(f"/api/v1/projects/default/runs/{run}/resume").status_code == 200
    again = world.claim()
    assert again is not None
    world.log(again, 2, 3)
    world.succeed(again)
    world.export()
    (export,) = world.exports(run)
    assert points_in("tensorboard", export["folder"]) == EXPECTED


@pytest.mark.long
def test_trackio_and_wandb_have_settings_and_links(world: TrackerWorld) -> None:
    world.tracker("trackio", name="one")
    world.tracker("wandb", name="two", mode="offline", project="tuning")
    run = world.done(*STEPS)
    world.export()
    world.export()
    one, two = world.exports(run)
    config = of_trackio(Path(one["folder"]))[1]
    assert config["run"] == "mix"
    assert config["steerboard_url"].endswith(f"/p/default/runs/{run}")
    assert "/p/default/models/model-" in config["steerboard_outputs"]["model"]
    _, config, summary = of_wandb(Path(two["folder"]))
    assert config["run"] == "mix"
    assert "/p/default/models/model-" in summary["steerboard/output/model"]
    assert (summary["loss"], summary["steerboard/state"]) == (0.25, "succeeded")


def test_runs_of_before_are_exported_when_asked(world: TrackerWorld) -> None:
    run = world.done(*STEPS)
    world.tracker("tensorboard")
    world.export()
    assert world.exports(run) == []
    asked = world.client.post("/api/v1/projects/default/trackers/t/exports", json={"run": "tuned"})
    assert (asked.status_code, asked.json()["step"]) == (200, None)
    world.export()
    assert points_in("tensorboard", world.exports(run)[0]["folder"]) == EXPECTED


def test_a_tracker_that_is_switched_off_gets_the_rest_later(world: TrackerWorld) -> None:
    world.tracker("tensorboard")
    world.client.patch("/api/v1/projects/default/trackers/t", json={"active": False})
    run = world.done(*STEPS)
    assert world.exports(run) == []
    world.client.patch("/api/v1/projects/default/trackers/t", json={"active": True})
    world.export()
    assert points_in("tensorboard", world.exports(run)[0]["folder"]) == EXPECTED
