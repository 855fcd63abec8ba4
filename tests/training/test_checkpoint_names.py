"""What an engine gets of a mixture in training has the names and the values of a saved checkpoint."""

from __future__ import annotations

import pytest
import torch
from accelerate.state import AcceleratorState
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from steerboard_contracts.methods.grpo import GrpoConfig
from steerboard_workers.alignment.modules import PolicyModule
from steerboard_workers.stages.distributed.choice import strategy_of
from steerboard_workers.stages.models.adapters import add_lora
from steerboard_workers.stages.training.sampling.vllm_sampler import whole_weights
from support.models.mixtures import FAMILIES, mixture_of

ONE_EXPERT = {
    "mixtral": "model.layers.0.block_sparse_moe.experts.3.w1.weight",
    "qwen3_moe": "model.layers.0.mlp.experts.3.gate_proj.weight",
}


@pytest.mark.parametrize("targets", [None, "linear", "experts"])
@pytest.mark.parametrize("family", FAMILIES)
def test_an_engine_gets_each_matrix_of_each_expert(base_model, tmp_path, family, targets):
    AcceleratorState._reset_state(reset_partial_state=True)
    folder = mixture_of(base_model, tmp_path / "model", family)
    written = load_file(folder / "model.safetensors")
    assert ONE_EXPERT[family] in written
    lora = None if targets is None else {"targets": targets, "rank": 2}
    config = GrpoConfig(method="grpo", lora=lora, rules=[{"kind": "regex", "pattern": "s"}], engine="vllm")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    if config.lora is not None:
        add_lora(model, config.lora, head=False, seed=0)  # which has changed nothing yet
    sharing = strategy_of(config, "cpu")
    module = PolicyModule(model)
    sharing.share(module)
    given = dict(whole_weights(config, module, sharing))
    assert given.keys() == written.keys()
    for name, tensor in given.items():
        torch.testing.assert_close(tensor, written[name], rtol=0, atol=0, check_dtype=False)
