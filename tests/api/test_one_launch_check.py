"""A run of its own and the same stage of a recipe are refused by the same rules, in the same words."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
import yaml
from api_world import ApiWorld

from steerboard.platform.database import transaction
from steerboard.registry.tables import Model

MODELS = {"tiny", "judge", "small"}


@pytest.fixture
def stocked(world: ApiWorld) -> ApiWorld:
    """A world with a reward model, a model with a small window, and labelled rows without groups."""
    world.model("judge", "reward")
    small = world.model("small")
    with transaction(world.sessions) as session:
        row = session.get_one(Model, small)
        row.info = {**row.info, "max_length": 64}
    rows = [{"prompt": f"Question {n}?", "response": "Yes.", "reward": float(n)} for n in range(8)]
    file = io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode())
    form = {"name": "ungrouped", "kind": "labelled"}
    answer = world.client.post(world.url("datasets/import"), data=form, files={"file": ("rows.jsonl", file)})
    assert answer.status_code == 201, answer.text
    return world


def as_recipe(config: dict[str, Any], inputs: dict[str, str], kinds: dict[str, str]) -> dict[str, Any]:
    """The request for a pipeline of this one stage."""
    declared = {
        f"in_{place}": {"type": "model"} if ref in MODELS else {"type": "dataset", "kind": kinds[ref]}
        for place, ref in enumerate(inputs.values())
    }
    names = dict(zip(inputs, (f"${name}" for name in declared), strict=True))
    stage = dict(config)
    for name, ref in names.items():
        slot, dot, _ = name.partition(".")
        stage[slot] = [*stage.get(slot, []), ref] if dot else ref
    text = yaml.safe_dump({"name": "one", "inputs": declared, "stages": {"stage": stage}})
    return {"text": text, "set": [f"{name}={ref}" for name, ref in zip(declared, inputs.values(), strict=True)]}


CASES = [
    ({"run": "score"}, {"data": "hh"}, "needs `reward`: a model"),
    ({"run": "base", "source": "random:tiny-llama"}, {}, "needs `data`: the tokenizer"),
    ({"run": "select"}, {"data.0": "ungrouped"}, "needs rows with `group`"),
    ({"run": "generate", "endpoint": "nobody"}, {"data": "hh"}, "there is no endpoint `nobody`"),
    ({"run": "generate", "endpoint": "nobody"}, {"data": "hh", "model": "tiny"}, "takes the place of `model`"),
    ({"run": "train", "method": "rloo"}, {"model": "tiny", "data": "hh"}, "reward"),
    ({"run": "train", "method": "dpo"}, {"model": "judge", "data": "hh"}, "`judge` is a model of role reward"),
    ({"run": "train", "method": "sft"}, {"model": "tiny", "data": "hh"}, "`hh` is a dataset of kind preferences"),
    ({"run": "select", "weights": [1.0, 2.0]}, {"data.0": "ungrouped"}, "has 2 items for 1 of `data`"),
    (
        {"run": "train", "method": "rloo", "max_new_tokens": 64, "answers": 2},
        {"model": "small", "data": "hh", "reward": "judge"},
        "max_new_tokens",
    ),
]


@pytest.mark.parametrize(("config", "inputs", "fault"), CASES, ids=[case[2][:30] for case in CASES])
def test_both_are_refused_in_the_same_words(
    stocked: ApiWorld, config: dict[str, Any], inputs: dict[str, str], fault: str
) -> None:
    alone = stocked.post("runs", {"config": config, "inputs": inputs}, status=422)
    recipe = as_recipe(config, inputs, {"hh": "preferences", "ungrouped": "labelled"})
    planned = stocked.post("pipelines", recipe, status=422)
    words = [sorted({fault["message"] for fault in problem["errors"]}) for problem in (alone, planned)]
    assert words[0] == words[1]
    assert any(fault in message for message in words[0]), words[0]
