"""A norm as one kernel gives what the model's own gives."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM, Gemma2Config, LlamaConfig, Qwen3Config

from steerboard_workers.stages.models.norms import fuse_norms, rms_norm
from support.models.tiny_shape import SHAPE

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="one kernel needs a GPU")


def norms(model: nn.Module) -> list[nn.Module]:
    return [part for part in model.modules() if type(part).__name__.endswith("RMSNorm")]


@pytest.mark.parametrize("config", [LlamaConfig(**SHAPE), Qwen3Config(**SHAPE)], ids=["llama", "qwen3"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norms_are_fused_and_give_the_same(config: LlamaConfig, dtype: torch.dtype) -> None:
    model = AutoModelForCausalLM.from_config(config)
    fuse_norms(model)
    assert norms(model)
    assert all("forward" in vars(norm) for norm in norms(model))
    for norm in norms(model):
        width = norm.weight.shape[0]
        nn.init.normal_(norm.weight)
        hidden = torch.randn(3, 5, width).to(dtype)
        bound = {"rtol": 1e-4, "atol": 1e-5} if dtype is torch.float32 else {"rtol": 2e-2, "atol": 2e-2}
        torch.testing.assert_close(rms_norm(norm, hidden), type(norm).forward(norm, hidden).to(dtype), **bound)


def test_other_norms_stay_as_they_are() -> None:
    model = AutoModelForCausalLM.from_config(Gemma2Config(**SHAPE))
    fuse_norms(model)
    assert norms(model)
    assert all("forward" not in vars(norm) for norm in norms(model))


def test_a_copy_has_norms_of_its_own() -> None:
    model = AutoModelForCausalLM.from_config(LlamaConfig(**SHAPE))
    fuse_norms(model)
    copied = deepcopy(model)
    nn.init.zeros_(norms(copied)[0].weight)
    hidden = torch.randn(2, SHAPE["hidden_size"])
    assert norms(copied)[0](hidden).abs().max() == 0
    assert norms(model)[0](hidden).abs().max() > 0


@NEEDS_GPU
def test_a_gpu_computes_logits_and_gradients_as_a_processor_does() -> None:
    model = AutoModelForCausalLM.from_config(LlamaConfig(**SHAPE))
    fuse_norms(model)
    ids = torch.randint(0, SHAPE["vocab_size"], (2, 12))
    outcomes = []
    for device in ("cpu", "cuda"):
        model.to(device).zero_grad()
        logits = model(input_ids=ids.to(device)).logits
        logits.square().mean().backward()
        outcomes.append((logits.detach().cpu(), norms(model)[0].weight.grad.detach().cpu().clone()))
    torch.testing.assert_close(outcomes[1], outcomes[0], rtol=1e-3, atol=1e-4)
