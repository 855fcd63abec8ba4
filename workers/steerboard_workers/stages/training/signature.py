"""Which checkpoints a run may resume from: those of its config, except for how the work is split, and of its inputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from steerboard_contracts.fields import EXECUTION_FIELDS
from steerboard_contracts.stage.inputs import DatasetInput, ModelInput
from steerboard_workers.stages.runtime import Stage

# They say what the other fields mean, so that they count though each has but one value.
_NAMES = ("run", "method", "kind")
# Fields that are newer than the former signatures, which had all others, defaults too.
_NEWER = {"keep", "condition_gain_rows", "drop_score", "score_style", "score_place", "score_words", "score_phrase"}
_NEWER |= {
    "balance_scores",
    "contrast",
    "loss_floor",
    "router_aux_loss",
    "router_balance",
    "freeze_router",
    "expert_kernels",
    "deterministic",
}


def signatures(stage: Stage) -> tuple[str, str]:
    """The signature of the checkpoints to write, and the former one of the same config.

    A field that holds its default does not count: a run that was paused before an upgrade then resumes after it, though
    its config has a new field now."""
    chosen = {name: value for name, value in _chosen(stage.spec.config).items() if name not in EXECUTION_FIELDS}
    every = stage.spec.config.model_dump(mode="json", exclude=set(EXECUTION_FIELDS))
    former = {name: value for name, value in every.items() if name in chosen or name not in _NEWER}
    return _signature(stage, chosen), _signature(stage, former)


def _signature(stage: Stage, config: Mapping[str, Any]) -> str:
    inputs = {
        name: item.content_hash
        for name, item in sorted(stage.spec.inputs.items())
        if isinstance(item, DatasetInput | ModelInput)
    }
    identity = json.dumps({"config": config, "inputs": inputs}, sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()


def _chosen(value: Any) -> Any:
    """The value as JSON, without the fields that hold their defaults."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields.items()
        held = ((name, getattr(value, name), field) for name, field in fields)
        return {
            name: _chosen(own)
            for name, own, field in held
            if name in _NAMES or own != field.get_default(call_default_factory=True)
        }
    if isinstance(value, list | tuple):
        return [_chosen(item) for item in value]
    return to_jsonable_python(value)
