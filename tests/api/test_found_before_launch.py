"""What a run would only find out after its base was loaded is refused when it is asked for, alone or in a recipe."""

from __future__ import annotations

from typing import Any

import pytest
from api_world import ApiWorld
from test_unfit_inputs import imported

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
    """Of a run of its own, and of the stage of a recipe."""
    alone = world.post("runs", {"config": config, "inputs": {"model": "tiny", "data": data}}, status=422)
    fields = ", ".join(f"{name}: {value}" for name, value in config.items())
    text = (
        f"name: r\ninputs:\n  base: {{type: model}}\n  data: {{type: dataset, kind: {kind}}}\n"
        f"stages:\n  only: {{{fields}, model: $base, data: $data}}\n"
    )
    body = {"text": text, "set": ["base=tiny", f"data={data}"]}
    planned = world.post("recipes/check", body, status=422)
    return [" ".join(one["message"] for one in found["errors"]) for found in (alone, planned)]


def test_more_steps_than_the_epochs_of_the_prompts_have(world: ApiWorld) -> None:
    imported(world, "few", "prompts", [{"prompt": f"Question {n}?"} for n in range(20)])
    config = {"run": "train", "method": "raft", "batch": 4, "epochs": 1, "max_steps": 6}
    online = {**config, "method": "online_dpo"}
    for message in refusals(world, online, "few", "prompts"):
        assert "max_steps is 6, and 1 epoch of 20 training rows with batch 4 has 5 steps at most" in message
        assert "raise epochs to 2" in message
    body = {"config": {**online, "max_steps": 5}, "inputs": {"model": "tiny", "data": "few"}}
    refused = world.post("runs", body, status=422)
    assert "max_steps" not in str(refused["errors"])


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
