"""A worker tokenises the rows of a recipe's training stages before it is started: what command and form then show."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dashboard_world import World, instructions
from page_checks import faults_of
from page_fields import choose
from playwright.sync_api import Page, expect

RECIPE = """
name: checked
inputs:
  base: {type: model}
  instructions: {type: dataset, kind: instructions}
  preferences: {type: dataset, kind: preferences}
stages:
  sft: {run: train, method: sft, model: $base, data: $instructions, batch: 8, max_steps: 1}
  slow: {run: train, method: sft, model: $base, data: $instructions, batch: 8, max_steps: 1, lr: 1.0e-7}
  reward: {run: train, method: reward_model, model: sft, data: $preferences, batch: 8, max_steps: 1}
  answers: {run: generate, model: sft, data: $instructions, decoding: {max_new_tokens: 4}, limit: 4}
  again: {run: train, method: sft, model: sft, data: answers, batch: 8, max_steps: 1}
"""
STRICT = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}{{ m.role }}: {{ m.content }}{{ eos_token }}"
    "{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
)


@pytest.fixture(scope="module")
def strict(world: World, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model whose template wants roles to alternate, with rows that do not, and rows of which half are too long."""
    config = {"run": "base", "source": "random:tiny-llama", "vocabulary": 400, "hidden": 32, "layers": 1, "heads": 2}
    body = {"name": "made", "config": {**config, "max_length": 96}, "inputs": {"data.0": "things"}}
    world.client.post("runs", json=body).raise_for_status()
    world.wait(lambda: world.get("runs/made")["state"] == "succeeded", "the base model")
    made = world.get("runs/made")["outputs"][0]["label"]
    folder = tmp_path_factory.mktemp("models") / "strict"
    world.steerboard("models", "export", made, str(folder))
    (folder / "steerboard.json").unlink()
    (folder / "chat_template.jinja").write_text(STRICT)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings.pop("chat_template", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    world.steerboard("models", "import", str(folder), "--name", "strict")
    rows: list[dict[str, Any]] = [
        {**row, "prompt": [{"role": "user", "content": row["prompt"]}]} for row in instructions()
    ]
    long = [{**row, "response": row["response"] * (20 if place % 2 else 1)} for place, row in enumerate(rows)]
    world.import_rows("halflong", "instructions", long)
    for place in (3, 5, 7, 11):
        rows[place]["prompt"] *= 2
    world.import_rows("twice", "instructions", rows)
    return "strict"


def run_recipe(world: World, folder: Path, *settings: str) -> subprocess.CompletedProcess[str]:
    (folder / "checked.yaml").write_text(RECIPE)
    command = [str(Path(sys.executable).with_name("steerboard")), "run", str(folder / "checked.yaml")]
    command += [part for setting in ("preferences=pairs", *settings) for part in ("--set", setting)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STEERBOARD_")}
    environment = {**clean, "STEERBOARD_HOME": str(world.home)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_command_waits_for_the_checks_and_starts_nothing_that_would_fail(
    world: World, strict: str, tmp_path: Path
) -> None:
    def finished() -> bool:
        # Other work on the machine may hold a check up for longer than the command waits.
        body = {"text": RECIPE, "set": [f"base={strict}", "preferences=pairs", "instructions=twice"]}
        checks = world.client.post("recipes/row-checks", json=body).raise_for_status().json()
        return all(check["check"] is None or check["check"]["state"] == "succeeded" for check in checks)

    world.wait(finished, "the checks")
    refused = run_recipe(world, tmp_path, f"base={strict}", "instructions=twice")
    assert refused.returncode == 2
    assert "reward: None of 40 checked rows is too long." in refused.stderr
    assert "again (its rows are sampled by `answers`)" in refused.stderr
    assert re.search(
        r"stages.sft.data: the chat template refuses 4 of 40 rows of `twice` that were checked: row \d+: .*roles must "
        r"alternate.*; row \d+: .*; row \d+: .*\. Correct or drop these rows, .* The same rows stop slow",
        refused.stderr,
    )
    assert not [pipeline for pipeline in world.get("pipelines")["items"] if pipeline["name"].startswith("checked-")]
    started = run_recipe(world, tmp_path, f"base={strict}", "instructions=halflong")
    assert started.returncode == 0, started.stderr
    assert "sft and slow: 50% of the 40 rows of halflong that were checked have more than 96 tokens" in started.stdout
    world.client.post("pipelines/checked-1/cancel").raise_for_status()


@pytest.mark.parametrize("window", [(1440, 900), pytest.param((390, 844), marks=pytest.mark.long)])
def test_the_form_shows_each_stage_once_and_starts_nothing_that_would_fail(
    page: Page, world: World, strict: str, window: tuple[int, int]
) -> None:
    page.set_viewport_size({"width": window[0], "height": window[1]})
    page.goto("/p/default/launch?recipe=demo")
    page.get_by_role("tab", name="YAML").click()
    page.get_by_label("The recipe as YAML").fill(RECIPE)
    choose(page, "base", "^strict")
    choose(page, "preferences", "^pairs")
    choose(page, "instructions", "^twice")
    page.get_by_role("tab", name="Stages").click()
    rows = page.get_by_role("region", name="Rows")
    launch = page.get_by_role("button", name="Launch", exact=True)
    expect(rows.get_by_text(re.compile("^sft, slow: the chat template refuses 4 of 40 rows of twice"))).to_be_visible()
    expect(rows.get_by_text("again: its rows are sampled by answers; the run checks the rows.")).to_be_visible()
    expect(launch).to_be_disabled()
    expect(page.get_by_text("The rows of sft, slow prevent the launch.")).to_be_visible()
    rows.get_by_role("button", name="1 stage fine").click()
    expect(rows.get_by_text("reward: none of 40 checked rows too long.")).to_be_visible()
    assert faults_of(page, "recipe with checked rows") == {}
    choose(page, "instructions", "^halflong")
    expect(rows.get_by_text("20 of 40 too long")).to_be_visible()
    expect(rows.get_by_text(re.compile("^sft, slow: 50% of the 40 rows of halflong"))).to_be_visible()
    expect(launch).to_be_enabled()
