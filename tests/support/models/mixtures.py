"""Tiny mixtures of experts with the tokenizer and the shape of another model."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, MixtralConfig, MixtralForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

FAMILIES = ("mixtral", "qwen3_moe")
_SHAPE = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")


def mixture_of(base: Path, folder: Path, family: str, experts: int = 4, **more: Any) -> Path:
    """A copy of `base` with so many experts a layer, two for each token, and random weights. The routers' weights are
    large, so that experts are used unequally."""
    shutil.copytree(base, folder)
    given = AutoConfig.from_pretrained(base)
    shape = {name: getattr(given, name) for name in (*_SHAPE, "max_position_embeddings", "eos_token_id")}
    shape |= {"intermediate_size": 32, "num_experts_per_tok": 2, **more}
    torch.manual_seed(0)
    if family == "mixtral":
        model: Any = MixtralForCausalLM(MixtralConfig(**shape, num_local_experts=experts))
    else:
        head = given.hidden_size // given.num_attention_heads
        config = Qwen3MoeConfig(**shape, moe_intermediate_size=32, num_experts=experts, head_dim=head)
        model = Qwen3MoeForCausalLM(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("mlp.gate.weight"):
                weight.mul_(10)
    model.save_pretrained(folder)
    return folder
