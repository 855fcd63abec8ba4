"""Commands answer in JSON where a script asks for it, in words where a person reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from api_world import ApiWorld
from test_unfit_inputs import imported

from support.processes.command_line import Steerboard


@pytest.fixture
def shell(steerboard: Steerboard, url: str, token: str) -> Callable[..., str]:
    def run(*arguments: str) -> str:
        done = steerboard(url, token, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_what_changes_something_answers_with_it(world: ApiWorld, shell: Callable[..., str]) -> None:
    started = world.start()
    run = next(run["id"] for run in started["runs"] if run["name"] == "sft")
    world.log(run, "one line", "another")
    lines = [json.loads(line) for line in shell("runs", "logs", run, "--json").splitlines()]
    assert [line["message"] for line in lines] == ["one line", "another"]
    assert set(json.loads(shell("version", "--json"))) == {"steerboard", "python"}
    cancelled = json.loads(shell("pipelines", "cancel", "small-1", "--json"))
    assert (cancelled["name"], cancelled["state"]) == ("small-1", "cancelled")
    assert json.loads(shell("pipelines", "resume", "small-1", "--json"))["name"] == "small-1"
    assert json.loads(shell("recipes", "show", "demo", "--json"))["name"] == "demo"


def test_one_split_of_a_dataset_is_exported(world: ApiWorld, shell: Callable[..., str], tmp_path: Path) -> None:
    imported(world, "asked", "prompts", [{"prompt": f"Question {n}?"} for n in range(60)], held_out=0.3)
    dataset = world.get("datasets/asked")
    rows: dict[str, set[str]] = {}
    for split in ("all", "train", "held_out"):
        file = tmp_path / f"{split}.jsonl"
        said: dict[str, Any] = json.loads(shell("datasets", "export", "asked", str(file), "--split", split, "--json"))
        assert (said["split"], said["bytes"]) == (split, file.stat().st_size)
        rows[split] = {json.loads(line)["prompt"] for line in file.read_text().splitlines()}
    assert len(rows["held_out"]) == dataset["held_out_rows"] > 0
    assert rows["train"] | rows["held_out"] == rows["all"]
    assert not rows["train"] & rows["held_out"]


def test_settings_are_shown_as_they_are_set(world: ApiWorld, shell: Callable[..., str]) -> None:
    lora = ("--set", "lora={rank: 4, targets: attention}", "--set", "gradient_checkpointing=true")
    asked = ("runs", "start", "reward_model", "--input", "model=tiny", "--input", "data=hh", *lora)
    run = shell(*asked).split()[1]
    line = next(line for line in shell("runs", "show", run).splitlines() if line.startswith("settings"))
    assert "lora.rank 4" in line
    assert "gradient_checkpointing true" in line
    assert not any(python in line for python in ("{", "[", "'", "None", "True"))
