"""Tiny models of many architectures, as others publish theirs."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from tokenizers import AddedToken
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

from support.models.template_families import tokenizer_of
from support.models.tiny_shape import SHAPE

FAMILIES = [
    "bloom", "cohere", "gemma", "gemma2", "gemma3_text", "gemma4_unified_text", "glm4_moe",
    "gpt2", "gpt_neox", "gpt_oss", "granite", "llama", "llama4_text", "minimax",
    "mistral", "mixtral", "mpt", "olmo2", "opt", "phi", "phi3",
    "phimoe", "qwen2", "qwen3", "qwen3_moe", "smollm3", "stablelm", "starcoder2",
]  # fmt: skip


def published(folder: Path, model_type: str = "llama", **config: object) -> Path:
    """A model in bf16 as others publish it, with settings of its own in every file."""
    tokenizer = copy.deepcopy(tokenizer_of("chatml"))
    tokenizer.add_tokens(["<tool>", AddedToken("<mark>", special=True, normalized=False)])
    tokenizer.padding_side = "left"
    tokenizer.model_max_length = 77
    torch.manual_seed(0)
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    shape = {**SHAPE, "vocab_size": len(tokenizer) + 24, "pad_token_id": None, "num_labels": 2}
    AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **{**shape, **ends, **config})).save_pretrained(
        folder
    )
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    ends["eos_token_id"] = [tokenizer.eos_token_id, 7]
    model.generation_config = GenerationConfig(**ends, do_sample=True, temperature=0.6, top_p=0.9, top_k=5)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
