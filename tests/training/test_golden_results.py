"""Results of former code: a change of them needs a new version, so that no finished run is reused for another result.

`result_version` of a method's spec, or `RESULT_VERSION` for what all share, are raised on purpose; then
`GOLDEN=write python -m pytest tests/training/test_golden_results.py` records the new figures next to the new versions.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from accelerate.state import AcceleratorState
from running import data_of, metrics_of, recorded

from steerboard_contracts.methods import methods, needed_method
from steerboard_contracts.result_version import RESULT_VERSION
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_workers.stages import generate, train

FILE = Path(__file__).with_name("golden_results.json")
QUICK = {"run": "train", "batch": 8, "max_steps": 3, "lr": 1e-3, "max_length": 96, "checkpoint_every": 0, "seed": 3}
ONLINE = {"batch": 4, "max_new_tokens": 8, "evaluate_every": 0}
RULES = [{"kind": "regex", "pattern": "s"}, {"kind": "regex", "pattern": "[aeiou]{2}"}]
# Processors round differently, and a step repeats what they rounded.
TOLERANCE = 2e-3


def config_of(method: str) -> dict[str, Any]:
    spec = needed_method(method)
    config = {**QUICK, "method": method}
    if not spec.online:
        return {**config, "evaluate_rows": 16}
    # What learns from a further model needs no reward.
    return {**config, **ONLINE} if needed_models(method) else {**config, **ONLINE, "rules": RULES}


def needed_models(method: str) -> list[str]:
    return [model.name for model in needed_method(method).frozen if model.required]


def golden() -> dict[str, Any]:
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def hold(name: str, versions: list[int], figures: dict[str, Any]) -> None:
    """Compare with the record, or write it."""
    known = golden()
    if os.environ.get("GOLDEN") == "write":
        known[name] = {"versions": versions, "figures": figures}
        FILE.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")
        return
    assert name in known, f"{name} has no golden results: record them with GOLDEN=write"
    assert known[name]["versions"] == versions, f"{name} has a new version: record its results with GOLDEN=write"
    for figure, value in known[name]["figures"].items():
        expected = value if isinstance(value, str | list) else pytest.approx(value, rel=TOLERANCE, abs=1e-4)
        assert figures[figure] == expected, f"{figure} of {name} is another one: raise its result_version"


@pytest.mark.parametrize("method", sorted(methods()))
def test_a_method_makes_what_it_made(method: str, make_stage, base_model, other_model) -> None:
    AcceleratorState._reset_state(True)
    data = data_of(method)
    stage = make_stage(config_of(method), model=base_model, data="labelled" if data == "prompts" else data)
    further = {name: ModelInput(name=name, path=str(other_model), content_hash="o") for name in needed_models(method)}
    stage.spec = stage.spec.model_copy(update={"inputs": {**stage.spec.inputs, **further}})
    train.run(stage)
    steps = metrics_of(recorded(stage, "metrics"))
    figures = {
        f"{name} {step}": round(values[name], 6)
        for step, values in sorted(steps.items())
        for name in ("loss", "eval_loss")
        if name in values
    }
    assert figures
    hold(f"train {method}", [RESULT_VERSION, needed_method(method).result_version], figures)


def test_generation_writes_what_it_wrote(make_stage, base_model) -> None:
    config = {
        "run": "generate",
        "decoding": {"temperature": 1.0, "n": 2, "max_new_tokens": 8},
        "limit": 4,
        "split": "all",
    }
    stage = make_stage(config, model=base_model)
    generate.run(stage)
    (file,) = stage.directory.glob("outputs/**/*.jsonl")
    texts = [json.loads(line)["response"] for line in file.read_text().splitlines()]
    hold("generate", [RESULT_VERSION, 1], {"responses": texts})
