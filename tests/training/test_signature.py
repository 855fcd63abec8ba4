"""Which checkpoints a run takes after an upgrade of what its config has."""

from __future__ import annotations

import hashlib
import json
import random

import pytest
from pydantic import create_model
from running import forked

from steerboard_contracts.methods.sft import SftConfig
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.signature import signatures

CONFIG = {
    "run": "train",
    "method": "sft",
    "batch": 8,
    "max_steps": 6,
    "max_length": 96,
    "checkpoint_every": 4,
    "checkpoint_seconds": 0,
}


@pytest.fixture
def signed(make_stage, base_model):
    def of(**config) -> tuple[str, str]:
        return signatures(make_stage({**CONFIG, **config}, model=base_model))

    return of


def test_a_field_that_is_new_and_holds_its_default_is_of_no_matter(make_stage, base_model):
    stage = make_stage({**CONFIG, "lora": {"rank": 4}}, model=base_model)
    newer = create_model("Newer", __base__=SftConfig, momentum=(float, 0.5))
    configs = [newer.model_validate(stage.spec.config.model_dump() | more) for more in ({}, {"momentum": 0.6})]
    same, other = (
        Stage(stage.directory, stage.spec.model_copy(update={"config": config}), stage._events) for config in configs
    )
    assert signatures(same)[0] == signatures(stage)[0] != signatures(other)[0]


def test_whatever_else_differs_is_another_config(signed):
    changes = ({}, {"lr": 1e-3}, {"keep": "best"}, {"lora": {}}, {"lora": {"rank": 4}}, {"method": "mle_filter"})
    assert len({signed(**change)[0] for change in changes}) == len(changes)
    assert signed(checkpoint_every=7) == signed(health=[{"kind": "held_out_loss"}]) == signed()


def test_a_checkpoint_with_the_former_signature_is_resumed_from(make_stage, base_model):
    """The former signature had every field, and there was no `keep`, nor settings of experts, nor `deterministic`."""
    stage = make_stage(CONFIG, model=base_model)
    forked(stage, 1, 5, random.Random(0))
    (folder,) = stage.checkpoints.glob("a1-step-*")
    shown = json.loads((stage.directory / "stage.json").read_text())
    left_out = {"micro_tokens", "micro_batch", "gradient_checkpointing", "strategy", "offload", "checkpoint_every"}
    left_out |= {"checkpoint_seconds", "probe", "health", "keep", "router_aux_loss", "router_balance", "freeze_router"}
    left_out |= {"expert_kernels", "deterministic"}
    config = {name: value for name, value in shown["config"].items() if name not in left_out}
    identity = json.dumps({"config": config, "inputs": {"data": "d", "model": "m"}}, sort_keys=True)
    former = hashlib.sha256(identity.encode()).hexdigest()
    record = folder / "record.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "signature": former}))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["record.json"] = hashlib.sha256(record.read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert "resumed from step 4" in str(forked(stage, 2, None, random.Random(0)))
