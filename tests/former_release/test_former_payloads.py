"""Work that waited through an upgrade: what the former releases stored is read by this one, without loss."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from steerboard.datasets.imports.schemas import ImportOptionsOut
from steerboard.evaluation.judges.schemas import JudgeSettings
from steerboard.playground.schemas import PlaygroundDecoding
from steerboard.runs.state.wakeups import WAKE_TASK
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.run_config import RUN_CONFIG
from steerboard_contracts.stage.spec import StageSpec

PARSE: dict[str, Callable[[Any], BaseModel]] = {
    "run_configs": RUN_CONFIG.validate_python,
    "stage_specs": StageSpec.model_validate,
    "normalisers": Normaliser.model_validate,
    "model_info": ModelInfo.model_validate,
    "import_options": ImportOptionsOut.model_validate,
    "judge_settings": JudgeSettings.model_validate,
    "playground_decoding": PlaygroundDecoding.model_validate,
}
# Fields that have no effect any more: draws of an evaluate run, whose intervals are those of its evaluation, and what
# an input model cost, which the server adds up.
DROPPED = {"bootstrap", "cost_seconds", "shared_seconds"}
RELEASES = sorted(Path(__file__).parent.glob("payloads-*.json"))


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.stem)
@pytest.mark.parametrize("what", PARSE)
def test_stored_payloads_of_former_releases_still_parse_and_mean_the_same(release: Path, what: str) -> None:
    stored = json.loads(release.read_text())[what]
    assert stored
    for document in stored:
        assert covers(PARSE[what](document).model_dump(mode="json"), document)


def test_wake_ups_of_former_releases_name_the_same_task() -> None:
    assert WAKE_TASK == "steerboard.wake"


def covers(now: Any, before: Any) -> bool:
    """Every value that was stored is still there but those of `DROPPED`; newer fields may be added."""
    if isinstance(before, dict):
        kept = {key: value for key, value in before.items() if key not in DROPPED}
        return isinstance(now, dict) and all(key in now and covers(now[key], value) for key, value in kept.items())
    if isinstance(before, list):
        same = isinstance(now, list) and len(now) == len(before)
        return same and all(covers(one, other) for one, other in zip(now, before, strict=True))
    return bool(now == before)
