"""Rows of a recipe's training stages are checked before it is started: each stage as a single run, or not, with the
reason; equal checks are one, and a stage that would fail stops the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from api_world import ApiWorld
from test_row_checks import CUT, REFUSED, ended

from support.processes.command_line import Steerboard

HEAD = "name: small\ninputs: {base: {type: model}, data: {type: dataset, kind: preferences}}\nstages:\n"
SFT = "  sft: {run: train, method: sft, model: $base, data: $texts, max_length: 24}\n"
REWARD = "  reward: {run: train, method: reward_model, model: sft, data: $data}\n"
RECIPE = HEAD.replace("data:", "texts: {type: dataset, kind: instructions}, data:") + SFT + REWARD


@pytest.fixture(autouse=True)
def texts(world: ApiWorld) -> None:
    world.dataset("texts", "instructions", rows=101)


def body(text: str = RECIPE, *settings: str, base: str = "tiny", **more: Any) -> dict[str, Any]:
    given = ["texts=texts"] if "$texts" in text else []
    return {"text": text, "set": [f"base={base}", "data=hh", *given, *settings], **more}


def checks(world: ApiWorld, *arguments: Any, **more: Any) -> dict[str, Any]:
    """The check's run, or why there is none, by stages."""
    row_checks = world.post("recipes/row-checks", body(*arguments, **more))
    return {" ".join(check["stages"]): check["not_checked"] or check["check"]["run_id"] for check in row_checks}


def config_of(world: ApiWorld, run: str) -> dict[str, Any]:
    detail = world.get(f"runs/{run}")
    return {**detail["config"]["training"], "inputs": {input_["name"]: input_["label"] for input_ in detail["inputs"]}}


def test_a_given_model_stands_in_for_what_stages_make_of_it(world: ApiWorld) -> None:
    by_stages = checks(world, RECIPE, "sft.template=plain")
    sft, reward = (config_of(world, by_stages[name]) for name in ("sft", "reward"))
    assert sft["inputs"] == {"model": "tiny", "data": "texts"}
    assert reward["inputs"] == {"model": "tiny", "data": "hh"}
    # A saved model has the template and the window that it was trained with.
    assert (reward["method"], reward["template"], reward["max_length"]) == ("reward_model", "plain", 24)
    own = checks(world, RECIPE, "sft.template=plain", "reward.max_length=32")
    assert (own["sft"], config_of(world, own["reward"])["max_length"]) == (by_stages["sft"], 32)
    assert world.get("runs")["items"] == []


def test_equal_checks_are_made_once(world: ApiWorld) -> None:
    vary = "{sft.lr: [1.0e-5, 1.0e-4], sft.seed: [0, 1]}"
    sweep = f"sweep: {{metric: sft.eval_loss, goal: minimize, vary: {vary}}}\n"
    by_stages = checks(world, RECIPE + sweep)
    assert [len(names.split()) for names in by_stages] == [4, 4]
    single: dict[str, Any] = {
        "config": {"run": "train", "method": "sft", "max_length": 24},
        "inputs": {"model": "tiny"},
    }
    single["inputs"]["data"] = "texts"
    assert world.post("runs/row-check", single)["run_id"] == next(iter(by_stages.values()))
    assert checks(world, RECIPE + sweep) == by_stages
    assert set(checks(world, RECIPE, from_stage="reward")) == {"reward"}


def test_stages_that_cannot_be_checked_yet_are_named_with_the_reason(world: ApiWorld) -> None:
    text = (
        HEAD
        + "  chosen: {run: mix, parts: [{data: $data, side: chosen}], size: 10}\n"
        + SFT.replace("$texts", "chosen")
        + REWARD
        + "  answers: {run: generate, model: sft, data: $data}\n"
        + "  again: {run: train, method: sft, model: sft, data: answers}\n"
        + "  graded: {run: score, data: answers, reward: reward}\n"
        + "  dt: {run: train, method: decision_transformer, model: sft, data: graded}\n"
        + "  tuned: {run: train, method: dpo, model: dt, data: $data}\n"
    )
    by_stages = checks(world, text)
    assert {name: why for name, why in by_stages.items() if " " in why} == {
        "sft": "its rows are mixed by `chosen`",
        "again": "its rows are sampled by `answers`",
        "dt": "its rows are scored by `graded`",
        "tuned": "`dt` changes the chat template of its model",
    }
    assert config_of(world, by_stages["reward"])["inputs"]["model"] == "tiny"
    outside = checks(world, base="org/name")
    assert outside == {"sft reward": "its model is imported by `base`"}


def test_more_checks_than_a_recipe_may_have_are_named(world: ApiWorld) -> None:
    stages = "".join(
        f"  s{place}: {{run: train, method: reward_model, model: $base, data: $data, max_length: {64 + place}}}\n"
        for place in range(23)
    )
    by_stages = checks(world, HEAD + stages)
    assert len(by_stages) == 21
    assert by_stages["s20 s21 s22"] == "the recipe has more than 20 different checks"


def test_rows_that_would_be_cut_are_warned_of_in_the_plan_and_at_the_start(world: ApiWorld) -> None:
    world.post("recipes/row-checks", body())
    ended(world, {**CUT, "too_long_rows": 50})
    (sft, _) = world.post("recipes/row-checks", body())
    assert (sft["check"]["too_long"], sft["check"]["warning"]["level"]) == (50, "serious")
    (planned, _) = world.post("recipes/check", body())["stages"]
    started = world.post("pipelines", body(), status=201)
    for stage in (planned, next(run for run in started["runs"] if run["name"] == "sft")):
        (warning,) = stage["warnings"]
        assert (warning["level"], "50% of the 100 rows of texts" in warning["message"]) == ("serious", True)


def test_rows_that_the_template_refuses_stop_the_start_and_name_the_stages(world: ApiWorld) -> None:
    twice = RECIPE + SFT.replace("sft:", "other:").replace("24}", "24, lr: 1.0e-3}")
    world.post("recipes/row-checks", body(twice))
    ended(world, REFUSED)
    for path in ("recipes/check", "pipelines"):
        problem = world.post(path, body(twice), status=422)
        (fault,) = problem["errors"]
        assert (problem["code"], fault["location"]) == ("invalid_recipe", "stages.sft.data")
        assert (
            "refuses 4 of 100 rows of `texts` that were checked: row 3: roles must alternate; row 5" in fault["message"]
        )
        assert fault["message"].endswith("The same rows stop other")
    assert world.get("pipelines")["items"] == []
    world.post("pipelines", body(twice, "sft.template=plain", "other.template=plain"), status=201)
    world.post("pipelines", body(RECIPE, "sft=null", "reward.model=$base"), status=201)


def test_the_command_names_what_is_not_checked_and_prints_what_refuses(
    world: ApiWorld, steerboard: Steerboard, url: str, token: str, tmp_path: Path
) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(RECIPE)
    command = ["run", str(file), *(part for setting in body()["set"] for part in ("--set", setting))]
    done = steerboard(url, token, *command)
    assert done.returncode == 0, done.stderr
    why = "Checked by their runs, not before the start: sft and reward (pool default has no worker).\n"
    assert done.stderr == why
    ended(world, REFUSED)
    assert steerboard(url, token, *command, "--set", "sft.template=plain", "--no-check").stderr == ""
    done = steerboard(url, token, *command)
    assert done.returncode == 2
    assert "stages.sft.data: the chat template refuses 4 of 100 rows of `texts`" in done.stderr
    assert len(world.get("pipelines")["items"]) == 2
