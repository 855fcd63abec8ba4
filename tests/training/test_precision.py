"""Which numbers a run computes in: what its config names, and what the device is able to do."""

from __future__ import annotations

import pytest
import torch
from accelerate.state import AcceleratorState
from running import recorded

from steerboard_contracts.fields import planned_bf16
from steerboard_workers.stages import train
from steerboard_workers.stages.models.model_io import multiplies_bf16, pick_dtype

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def able(monkeypatch):
    """A CPU with these instructions."""

    def with_(*names: str) -> None:
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: dict.fromkeys(names, True) | {"avx2": True})

    return with_


@pytest.mark.parametrize("names", [("avx512_bf16",), ("amx_bf16",), ("bf16",)])
def test_fast_is_bf16_on_a_cpu_that_multiplies_in_it(able, names):
    able(*names)
    assert pick_dtype("fast", CPU) is torch.bfloat16
    assert pick_dtype("auto", CPU) is torch.float32


def test_fast_is_fp32_on_a_cpu_that_does_not(able):
    able()
    assert pick_dtype("fast", CPU) is torch.float32
    assert pick_dtype("bf16", CPU) is torch.bfloat16


def test_a_gpu_takes_bf16_unless_it_is_told_otherwise():
    assert [pick_dtype(precision, GPU) is torch.bfloat16 for precision in ("auto", "fast", "bf16", "fp32")] == [
        True
    ] * 3 + [False]
    assert multiplies_bf16(GPU)


def test_what_a_cpu_is_able_to_do_is_not_planned_with():
    assert [planned_bf16(precision, False) for precision in ("auto", "fast", "bf16", "fp32")] == [
        False,
        False,
        True,
        False,
    ]
    assert [planned_bf16(precision, True) for precision in ("auto", "fast", "bf16", "fp32")] == [
        True,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(("precision", "warned"), [("bf16", True), ("fast", False)])
def test_bf16_on_a_cpu_without_it_is_warned_of(able, precision, warned, make_stage, base_model):
    able()
    AcceleratorState._reset_state(True)
    config = {"run": "train", "method": "sft", "max_steps": 1, "max_length": 64, "precision": precision}
    stage = make_stage(config, model=base_model)
    train.run(stage)
    prepared = recorded(stage, "prepared")[0]
    assert ("slow_bf16" in [warning.code for warning in prepared.warnings]) is warned
