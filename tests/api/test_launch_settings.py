"""`--set` of `runs start` and `runs change`, names that are misspelled, and `run --from`, on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from api_world import RECIPE, ApiWorld

from support.processes.command_line import Done, Steerboard

Shell = Callable[..., Done]


@pytest.fixture
def shell(steerboard: Steerboard, url: str, token: str) -> Shell:
    return lambda *arguments: steerboard(url, token, *arguments)


@pytest.fixture
def recipe(tmp_path: Path) -> tuple[str, ...]:
    file = tmp_path / "small.yaml"
    file.write_text(RECIPE)
    return ("run", str(file), "--set", "base=tiny", "--set", "data=hh")


def started(world: ApiWorld, *settings: str, shell: Shell) -> dict[str, object]:
    given = [part for setting in settings for part in ("--set", setting)]
    done = shell("runs", "start", "reward_model", "--input", "model=tiny", "--input", "data=hh", *given)
    assert done.returncode == 0, done.stderr
    config: dict[str, object] = world.get(f"runs/{done.stdout.split()[1]}")["config"]
    return config


def test_settings_of_a_run_are_yaml_at_dotted_paths(world: ApiWorld, shell: Shell) -> None:
    config = started(world, "lr=2e-5", "lora.rank=4", "lora.alpha=8", "half=b", "max_steps=~", shell=shell)
    assert (config["lr"], config["half"], config["max_steps"]) == (2e-5, "b", None)
    assert {"rank": 4, "alpha": 8}.items() <= dict(config["lora"]).items()  # type: ignore[call-overload]
    flow = started(world, "lora={rank: 2}", "lora.alpha=3", shell=shell)
    assert {"rank": 2, "alpha": 3}.items() <= dict(flow["lora"]).items()  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("reward_modle",), "config.run: `reward_modle` is not a method or a run kind; did you mean `reward_model`?"),
        (("dppo",), "config.run: `dppo` is not a method or a run kind; did you mean `dpo`?"),
        (("reward_model", "--set", "btach=1"), "config.btach: unknown key `btach`; did you mean `batch`?"),
        (("reward_model", "--set", "lora.rnk=1"), "config.lora.rnk: unknown key `rnk`; did you mean `rank`?"),
        (("reward_model", "--set", "batch=few"), "config.batch: should be a valid integer, "),
        (("reward_model", "--set", "lora=[1"), "--set lora=[1: the value is not valid YAML"),
        (("reward_model", "--set", "lora"), "--set lora: is not of the form"),
        (
            ("reward_model", "--input", "dta=hh"),
            "inputs.dta: is not an input of train reward_model; did you mean `data`?",
        ),
        (("reward_model", "--input", "model=tyny"), "inputs.model: there is no model 'tyny'; did you mean `tiny`?"),
    ],
)
def test_a_misspelled_name_is_answered_with_the_nearest(
    world: ApiWorld, shell: Shell, arguments: tuple[str, ...], words: str
) -> None:
    done = shell("runs", "start", *arguments)
    assert done.returncode == 1
    assert words in done.stderr
    assert world.get("runs")["items"] == []


def test_a_start_from_a_stage_takes_what_was_made_before_and_runs_the_rest_again(
    world: ApiWorld, shell: Shell, recipe: tuple[str, ...]
) -> None:
    world.start()
    for _ in range(3):
        world.work()
    done = shell(*recipe, "--from", "sft")
    assert done.returncode == 0, done.stderr
    pipeline = world.get("pipelines/small-2")
    states = {run["name"]: (run["state"], run["reused_from_id"] is not None) for run in pipeline["runs"]}
    assert states == {"chosen": ("succeeded", True), "sft": ("queued", False), "reward": ("pending", False)}
    # What neither the stage nor anything after it needs has no run.
    assert shell(*recipe, "--from", "reward").returncode == 0
    last = {run["name"]: run["state"] for run in world.get("pipelines/small-3")["runs"]}
    assert last == {"chosen": "succeeded", "sft": "succeeded", "reward": "queued"}


def test_a_start_from_a_stage_is_refused_where_an_earlier_one_was_not_made(
    world: ApiWorld, shell: Shell, recipe: tuple[str, ...]
) -> None:
    world.start()
    world.work()
    done = shell(*recipe, "--from", "reward")
    assert done.returncode == 2
    assert "the recipe cannot be started from reward [invalid_recipe]" in done.stderr
    assert "--from reward: no finished run with the same settings, inputs and code made sft\n" in done.stderr
    done = shell(*recipe, "--set", "chosen.size=9", "--from", "sft")
    assert "inputs and code made chosen\n" in done.stderr
    assert "did you mean `reward`?" in shell(*recipe, "--from", "rewrd").stderr
    assert [pipeline["name"] for pipeline in world.get("pipelines")["items"]] == ["small-1"]


def test_a_check_from_a_stage_shows_what_would_run_or_why_nothing_could_and_starts_nothing(
    world: ApiWorld, shell: Shell, recipe: tuple[str, ...]
) -> None:
    check = ("recipes", "check", *recipe[1:])
    world.start()
    world.work()
    done = shell(*check, "--from", "reward")
    assert done.returncode == 2
    assert "--from reward: no finished run with the same settings, inputs and code made sft\n" in done.stderr
    done = shell(*check, "--from", "sft")
    assert done.returncode == 0, done.stderr
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["sft", "reward"]
    assert "note: chosen is taken from finished runs\n" in done.stderr
    assert "did you mean `reward`?" in shell(*check, "--from", "rewrd").stderr
    assert [pipeline["name"] for pipeline in world.get("pipelines")["items"]] == ["small-1"]
    assert len(world.get("runs")["items"]) == 3
