"""A tiny random model whose greedy answers end after different numbers of tokens."""

from __future__ import annotations

import pytest
import torch
from engine_prompts import PROMPTS

from steerboard_contracts.run_kinds.base import BaseModelConfig
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.engines.transformers_engine import TransformersEngine
from steerboard_workers.stages.base import random_llama, train_tokenizer
from steerboard_workers.synthetic.topics import TOPICS


@pytest.fixture(scope="session")
def tokenizer():
    texts = [f"User: {p} Assistant: {s}" for p in PROMPTS for t in TOPICS for s in t.steps]
    return train_tokenizer(texts, 600, 160)


@pytest.fixture(scope="session")
def model(tokenizer):
    config = BaseModelConfig(source="random:tiny-llama", hidden=32, layers=2, heads=2, max_length=160)
    model = random_llama(config, tokenizer)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_(std=0.5)  # far from uniform, so that answers differ by prompt
    model.eval()
    # A fifth of the vocabulary ends an answer: lengths vary as they do with a trained model.
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, *range(300, 420, 5)]
    return model


@pytest.fixture(scope="session")
def renderer(tokenizer):
    return Renderer(tokenizer, "plain", 160)


@pytest.fixture
def make_engine(model, renderer):
    def make(batch_size: int = 16) -> TransformersEngine:
        return TransformersEngine(model, renderer, torch.device("cpu"), batch_size)

    return make
