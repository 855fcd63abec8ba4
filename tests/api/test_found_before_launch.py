"""What a run would only find out after its base was loaded is refused when it is asked for, alone or in a recipe."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from api_world import ApiWorld
from test_unfit_inputs import imported

from steerboard.platform.settings import Settings
from steerboard.runs.launch import catalogue
from steerboard_contracts.methods import needed_method
from steerboard_contracts.online_config import OnlineConfig
from support.processes.command_line import Steerboard

GRADED = [
    {
        "prompt": f"Question {n}?",
        "response": f"Answer {n}.",
        "reward": float(n),
        "source": "mine",
        "attributes": {"verbosity": n},
    }
    for n in range(20)
]


def refusals(world: ApiWorld, config: dict[str, Any], data: str, kind: str) -> list[str]:
    """The refusals of a run of its own, and of the stage of a recipe."""
    alone = world.post("runs", {"config": config, "inputs": {"model": "tiny", "data": data}}, status=422)
    fields = ", ".join(f"{name}: {value}" for name, value in config.items())
    text = (
        f"name: r\ninputs:\n  base: {{type: model}}\n  data: {{type: dataset, kind: {kind}}}\n"
        f"stages:\n  only: {{{fields}, model: $base, data: $data}}\n"
    )
    body = {"text": text, "set": ["base=tiny", f"data={data}"]}
    planned = world.post("recipes/check", body, status=422)
    return [" ".join(error["message"] for error in refusal["errors"]) for refusal in (alone, planned)]


def test_more_steps_than_the_epochs_of_the_prompts_have(world: ApiWorld) -> None:
    imported(world, "few", "prompts", [{"prompt": f"Question {n}?"} for n in range(20)])
    config = {"run": "train", "method": "raft", "batch": 4, "epochs": 1, "max_steps": 6}
    online = {**config, "method": "online_dpo"}
    for message in refusals(world, online, "few", "prompts"):
        assert "max_steps is 6, and 1 epoch of 20 training rows with batch 4 has 5 steps at most" in message
        assert "raise epochs to 2" in message
    alone = world.post("runs", {"config": online, "inputs": {"model": "tiny", "data": "few"}}, status=422)
    assert [error["location"] for error in alone["errors"] if "steps" in error["message"]] == ["config.max_steps"]
    body = {"config": {**online, "max_steps": 5}, "inputs": {"model": "tiny", "data": "few"}}
    refused = world.post("runs", body, status=422)
    assert "max_steps" not in str(refused["errors"])


@pytest.mark.parametrize(
    ("rows", "batch", "asked", "updates"), [(17, 4, 10, 1), (20, 4, 6, 1), (3, 8, 3, 2), (100, 7, 99, 4), (1, 1, 2, 1)]
)
def test_the_epochs_that_are_advised_are_the_fewest_that_are_enough(
    rows: int, batch: int, asked: int, updates: int
) -> None:
    given = {"run": "train", "method": "ppo", "batch": batch, "max_steps": asked, "minibatches": updates}
    config = needed_method("ppo").config.model_validate(given)
    assert isinstance(config, OnlineConfig)
    match = re.search(r"raise epochs to (\d+)", config.steps_fault(rows) or "")
    assert match is not None
    steps = [config.model_copy(update={"epochs": float(match[1]) - less}).most_steps(rows) for less in (0, 1)]
    assert steps[0] >= asked > steps[1]


def test_a_reward_server_at_a_private_address_is_refused_at_its_field(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported(world, "few", "prompts", [{"prompt": f"Question {n}?"} for n in range(20)])

    def faults(url: str) -> dict[str, str]:
        rules = [{"kind": "regex", "pattern": "a"}, {"kind": "http", "url": url}]
        config = {"run": "train", "method": "rloo", "rules": rules}
        body = {"config": config, "inputs": {"model": "tiny", "data": "few"}}
        made = world.client.post(world.url("runs/estimate"), json=body).json()
        return {error["location"]: error["message"] for error in made.get("errors", [])}

    for private in ("http://127.0.0.1:9/score", "http://localhost:9/score", "http://[::1]:9/score"):
        message = faults(private)["config.rules.1.url"]
        assert message.startswith("is a private address")
        assert "STEERBOARD_ALLOWED_PRIVATE" in message
    # Its name may have an address when the run starts.
    for other in ("http://8.8.8.8/score", "https://nowhere.invalid/score"):
        assert "config.rules.1.url" not in faults(other)
    monkeypatch.setattr(catalogue, "get_settings", lambda: Settings(allowed_private="127.0.0.1"))
    assert "config.rules.1.url" not in faults("http://127.0.0.1:9/score")


def test_an_environment_server_at_a_private_address_is_refused_at_its_field(world: ApiWorld) -> None:
    imported(world, "asked", "prompts", [{"prompt": f"Question {n}?"} for n in range(20)])

    def faults(url: str) -> dict[str, str]:
        server = {"kind": "openenv", "url": url, "action_field": "message", "observation_field": "text"}
        config = {"run": "train", "method": "rloo", "environment": server}
        body = {"config": config, "inputs": {"model": "tiny", "data": "asked"}}
        made = world.client.post(world.url("runs/estimate"), json=body).json()
        return {error["location"]: error["message"] for error in made.get("errors", [])}

    assert faults("http://127.0.0.1:9")["config.environment.url"].startswith("is a private address")
    assert "config.environment.url" not in faults("http://8.8.8.8")


def test_a_method_that_samples_nothing_is_warned_of_max_steps_that_its_rows_do_not_have(
    world: ApiWorld, steerboard: Steerboard, url: str, token: str, tmp_path: Path
) -> None:
    rows = [{"prompt": f"Question {n}?", "chosen": "Yes.", "rejected": "No."} for n in range(20)]
    imported(world, "few", "preferences", rows)
    words = "Training ends after 5 steps at most, the end of 1 epoch, and max_steps is 6. Raise epochs to reach it."
    config = {"run": "train", "method": "reward_model", "batch": 4, "epochs": 1, "max_steps": 6}
    alone = {"config": config, "inputs": {"model": "tiny", "data": "few"}}
    for made in (world.post("runs/estimate", alone), world.post("runs", alone, status=201)):
        assert [warning["message"] for warning in made["warnings"]] == [words]
    # Both halves of a pair are rows of its own.
    halves = {**alone, "config": {**config, "method": "kto", "max_steps": 10}}
    assert world.post("runs/estimate", halves)["warnings"] == []
    assert world.post("runs/estimate", {**alone, "config": {**config, "max_steps": 5}})["warnings"] == []

    fields = ", ".join(f"{name}: {value}" for name, value in config.items())
    (tmp_path / "r.yaml").write_text(
        "name: r\ninputs: {base: {type: model}, data: {type: dataset, kind: preferences}}\n"
        f"stages:\n  only: {{{fields}, model: $base, data: $data}}\n"
    )
    body = {"text": (tmp_path / "r.yaml").read_text(), "set": ["base=tiny", "data=few"]}
    for path, status in (("recipes/check", 200), ("recipes/draft", 200)):
        (stage,) = world.post(path, body, status=status)["stages"]
        assert [warning["message"] for warning in stage["warnings"]] == [words]
    given = [str(tmp_path / "r.yaml"), "--set", "base=tiny", "--set", "data=few"]
    for command in (["recipes", "check"], ["run"]):
        assert f"Warning: only: {words}" in " ".join(steerboard(url, token, *command, *given).stdout.split())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("verbosty", "has the attribute `verbosty`; did you mean `verbosity`?"),
        ("humour", "has the attribute `humour`; known: verbosity"),
    ],
)
def test_an_attribute_that_no_training_row_has(world: ApiWorld, name: str, words: str) -> None:
    imported(world, "graded", "labelled", GRADED)
    config = {"run": "train", "method": "decision_transformer", "attributes": f"[rm_score, {name}]"}
    planned = refusals(world, {**config}, "graded", "labelled")[1]
    assert words in planned
    alone = {"config": {**config, "attributes": ["rm_score", name]}, "inputs": {"model": "tiny", "data": "graded"}}
    assert words in str(world.post("runs", alone, status=422)["errors"])


def test_an_evaluation_of_prompts_that_are_all_for_training(world: ApiWorld) -> None:
    imported(world, "kept", "prompts", [{"prompt": f"Question {n}?"} for n in range(20)])
    text = (
        "name: r\ninputs:\n  base: {type: model}\n  judge: {type: model}\n  data: {type: dataset, kind: prompts}\n"
        "stages:\n  report: {run: evaluate, entrants: [$base], rewards: [$judge], data: $data}\n"
    )
    world.model("judge", "reward")
    body = {"text": text, "set": ["base=tiny", "judge=judge", "data=kept"]}
    (fault,) = world.post("recipes/check", body, status=422)["errors"]
    assert fault["location"].startswith("stages.report.data")
    assert "`kept` has no held-out rows among its 20 rows; import more prompts" in fault["message"]
