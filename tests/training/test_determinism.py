"""Runs with `deterministic`: torch refuses kernels whose results differ from run to run."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from running import data_of, final_weights

from steerboard_contracts.errors import BadInput
from steerboard_workers.stages import train

CONFIG = {"run": "train", "batch": 8, "lr": 2e-3, "max_steps": 3, "max_length": 96}


def weights(make_stage: Any, base_model: Any, method: str, **config: Any) -> dict[str, torch.Tensor]:
    stage = make_stage(
        {**CONFIG, "method": method, **config},
        model=base_model,
        data="preferences" if method == "rloo" else data_of(method),
    )
    train.run(stage)
    result: dict[str, torch.Tensor] = final_weights(stage)
    return result


SAMPLED = {"rules": [{"kind": "regex", "pattern": "s"}], "max_new_tokens": 4, "answers": 2, "evaluate_rows": 4}


@pytest.mark.parametrize(
    ("method", "config"), [("decision_transformer", {}), ("dpo", {}), ("reward_model", {}), ("rloo", SAMPLED)]
)
def test_on_a_cpu_it_changes_nothing(make_stage, base_model, method, config):
    plain = weights(make_stage, base_model, method, **config)
    strict = weights(make_stage, base_model, method, **config, deterministic=True)
    assert all(torch.equal(tensor, strict[name]) for name, tensor in plain.items())


def test_a_step_without_such_a_kernel_ends_the_run_and_says_so(make_stage, base_model, monkeypatch):
    forward = torch.nn.functional.silu

    def put(values: torch.Tensor, inplace: bool = False) -> torch.Tensor:
        values.detach().clone().put_(torch.tensor([0]), torch.ones(1))  # it has none
        return forward(values)

    monkeypatch.setattr(torch.nn.functional, "silu", put)
    with pytest.raises(BadInput, match="put_ does not have a deterministic implementation") as failed:
        weights(make_stage, base_model, "sft", deterministic=True)
    assert failed.value.code == "not_deterministic"
    assert not torch.are_deterministic_algorithms_enabled()
    weights(make_stage, base_model, "sft")
