"""The place where tests find vLLM, the environment of `make setup-vllm` or the one that STEERBOARD_VLLM_PYTHON names,
and models that it takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steerboard.platform.processes.vllm import find_python
from steerboard.platform.settings import Settings

PYTHON = find_python(Settings())
needs_vllm = pytest.mark.skipif(PYTHON is None, reason="there is no .venv-vllm: run `make setup-vllm`")


def write_models(folder: Path, tokenizer: Any) -> None:
    """`policy` and `reward`, their heads as small as vLLM's kernels for CPUs know them."""
    import torch
    from transformers import LlamaForSequenceClassification

    from steerboard_contracts.models import ModelInfo
    from steerboard_contracts.run_kinds.base import BaseModelConfig
    from steerboard_workers.stages.base import random_llama
    from steerboard_workers.stages.models.model_saving import save_model

    config = BaseModelConfig(source="random:tiny-llama", hidden=64, layers=2, heads=2, max_length=160)
    policy = random_llama(config, tokenizer)
    policy.config.num_labels = 1
    judge = LlamaForSequenceClassification(policy.config)
    for seed, model in enumerate((policy, judge)):
        torch.manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 2:
                    parameter.normal_(std=0.3)
        model.eval()
    common = {"parameters": 1, "template": "plain", "max_length": 160}
    save_model(folder / "policy", policy, tokenizer, ModelInfo(role="base", architecture="LlamaForCausalLM", **common))
    info = ModelInfo(role="reward", architecture="LlamaForSequenceClassification", **common)
    save_model(folder / "reward", judge, tokenizer, info)
    # Among the model's own ends are some that the renderer does not know, so that lengths vary as with a trained one.
    path = folder / "policy" / "generation_config.json"
    ends = [tokenizer.eos_token_id, *range(300, 420, 5)]
    path.write_text(json.dumps({**json.loads(path.read_text()), "eos_token_id": ends}))
    write_adapted(folder, tokenizer, common)


def write_adapted(folder: Path, tokenizer: Any, common: dict[str, Any]) -> None:
    """`adapted`: an adapter over `policy` that changes its answers."""
    import torch

    from steerboard_contracts.lora import LoraConfig
    from steerboard_contracts.models import MODEL_INFO_FILE, ModelInfo
    from steerboard_workers.stages.models import adapters
    from steerboard_workers.stages.models.model_io import load_policy

    lora, adapted = LoraConfig(rank=4, alpha=8.0), folder / "adapted"
    adapted.mkdir()
    model = load_policy(folder / "policy", "fp32", "cpu").model
    adapters.add_lora(model, lora, head=False, seed=0)
    torch.manual_seed(9)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".lora_B." in name:
                parameter.normal_(std=0.2)
    trained = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    adapters.copy_base(folder / "policy", adapted)
    adapters.write_adapter(adapted, model, trained, lora, head=False)
    model.config.save_pretrained(adapted)
    tokenizer.save_pretrained(adapted)
    (adapted / "generation_config.json").write_bytes((folder / "policy" / "generation_config.json").read_bytes())
    info = ModelInfo(role="policy", architecture="LlamaForCausalLM", lora=lora, **common)
    (adapted / MODEL_INFO_FILE).write_text(info.model_dump_json())
