"""The models and prompts of `benchmarks/scale.py`: 6 layers, hidden 256, random weights, a vocabulary of 8,192."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from steerboard_workers.synthetic.topics import QUESTIONS, SITUATIONS, TOPICS, prompt_text

BATCH = 32
NEW_TOKENS = 128
VOCABULARY = 8192
WINDOW = 512
_ALL = [
    prompt_text(topic, situation, question) for topic in TOPICS for situation in SITUATIONS for question in QUESTIONS
]
PROMPTS = _ALL[:: len(_ALL) // 128][:128]


def write_models(folder: Path) -> None:
    """`policy`, whose answers end at different lengths because many tokens are ends, and `reward`."""
    import torch
    from transformers import LlamaForSequenceClassification

    from steerboard_contracts.models import ModelInfo
    from steerboard_contracts.run_kinds.base import BaseModelConfig
    from steerboard_workers.stages.base import random_llama, train_tokenizer
    from steerboard_workers.stages.models.model_saving import save_model

    tokenizer = train_tokenizer([f"User: {prompt} Assistant:" for prompt in _ALL], VOCABULARY, WINDOW)
    config = BaseModelConfig(source="random:tiny-llama", hidden=256, layers=6, heads=8, max_length=WINDOW)
    policy = random_llama(config, tokenizer)
    policy.resize_token_embeddings(VOCABULARY, mean_resizing=False)
    policy.config.num_labels = 1
    reward = LlamaForSequenceClassification(policy.config)
    for seed, model in enumerate((policy, reward)):
        torch.manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 2:
                    parameter.normal_(std=0.16)
        model.eval()
    _save(save_model, folder / "policy", policy, tokenizer, ModelInfo(**_info(policy, "sft")))
    _save(save_model, folder / "reward", reward, tokenizer, ModelInfo(**_info(reward, "reward")))
    path = folder / "policy" / "generation_config.json"
    ends = [tokenizer.eos_token_id, *range(300, VOCABULARY, 80)]
    path.write_text(json.dumps({**json.loads(path.read_text()), "eos_token_id": ends}))


def _save(save: Any, folder: Path, model: Any, tokenizer: Any, info: Any) -> None:
    folder.mkdir(parents=True)
    save(folder, model, tokenizer, info)


def _info(model: Any, role: str) -> dict[str, Any]:
    parameters = sum(parameter.numel() for parameter in model.parameters())
    common = {"parameters": parameters, "template": "plain", "max_length": WINDOW}
    return {"role": role, "architecture": type(model).__name__, **common}
