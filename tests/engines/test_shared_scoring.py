"""Answers to one prompt are scored behind one copy of it, wherever that changes no reward."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, Gemma2Config, LlamaConfig, MistralConfig

from steerboard_workers.alignment.rendering.render import Rendered
from steerboard_workers.engines.rewards import TransformersRewards

SHAPE = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "pad_token_id": 0,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 128,
    "num_labels": 1,
    "initializer_range": 0.2,  # large weights, so that a leak between answers shows
}
CONFIGS = {
    "full": LlamaConfig(**SHAPE),
    "wide_window": MistralConfig(**SHAPE, sliding_window=64),
    "narrow_window": MistralConfig(**SHAPE, sliding_window=24),
    "eager": Gemma2Config(**SHAPE, sliding_window=64),
}
RENDERER = SimpleNamespace(tokenizer=SimpleNamespace(pad_token_id=0))
CPU = torch.device("cpu")


def answered(prompts: int, answers: int) -> list[Rendered]:
    """Rows of a prompt are not adjacent."""
    draw = np.random.default_rng(5)
    starts = [draw.integers(3, 64, draw.integers(8, 24)).tolist() for _ in range(prompts)]
    made = []
    for _ in range(answers):
        for start in starts:
            ids = start + draw.integers(3, 64, draw.integers(1, 12)).tolist()
            made.append(Rendered(ids, len(start), [], False))
    return made


class Scored:
    """An engine whose forward passes and notes are counted."""

    def __init__(self, config) -> None:
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_config(config).eval()
        self.notes: list[str] = []
        self.positions = 0
        model.get_input_embeddings().register_forward_hook(self._count)
        self.engine = TransformersRewards(model, RENDERER, CPU, self.notes.append)

    def _count(self, module, inputs, output) -> None:
        self.positions += inputs[0].numel()

    def rewards(self, sequences: list[Rendered], batch_tokens: int = 400) -> list[float]:
        found: dict[int, float] = {}
        self.positions = 0
        for places, values in self.engine.score(sequences, batch_tokens):
            assert not found.keys() & set(places)
            found |= zip(places, values, strict=True)
        return [found[place] for place in range(len(sequences))]


@pytest.mark.parametrize("name", CONFIGS)
def test_rewards_are_those_of_each_answer_by_itself(name):
    scored, sequences = Scored(CONFIGS[name]), answered(6, 4)
    together = scored.rewards(sequences)
    alone = [scored.rewards([one])[0] for one in sequences]
    assert together == pytest.approx(alone, abs=1e-5)
    assert max(together) - min(together) > 1e-2
    # Again, for the model was left with another attention.
    assert scored.rewards(sequences) == together


@pytest.mark.parametrize("name", CONFIGS)
def test_a_prompt_is_computed_once_where_that_is_exact_and_it_is_said_where_not(name):
    scored, sequences = Scored(CONFIGS[name]), answered(6, 4)
    scored.rewards(sequences)  # tries out what the model allows
    scored.rewards(sequences)
    tokens = sum(len(one.ids) for one in sequences)
    if name.startswith("narrow"):
        assert len(scored.notes) == 1
        assert "than the 24 tokens that attention sees" in scored.notes[0]
    elif name == "eager":
        assert scored.notes == ["this architecture cannot share prompts: each answer is computed with its own"]
        assert scored.positions >= tokens
    else:
        prompts = sum(one.prompt_length for one in sequences)
        assert scored.positions <= tokens - prompts * 3 / 4 + 1
        assert not scored.notes


def test_equal_answers_get_the_very_same_reward_and_are_computed_once():
    scored, sequences = Scored(CONFIGS["full"]), answered(3, 2)
    once = scored.rewards(sequences)
    scored.rewards(sequences)
    positions = scored.positions
    twice = scored.rewards(sequences * 2)
    assert twice[:6] == twice[6:]
    assert twice[:6] == once
    assert scored.positions == positions


def test_passes_keep_their_budget_however_many_answers_a_prompt_has():
    scored, sequences = Scored(CONFIGS["full"]), answered(1, 60)
    scored.rewards(sequences, 100)  # tries out what the model allows
    widest: list[int] = []
    hook = scored.engine._module.model.get_input_embeddings().register_forward_hook(
        lambda module, inputs, output: widest.append(inputs[0].numel())
    )
    values = scored.rewards(sequences, 100)
    hook.remove()
    assert len(values) == 60
    assert max(widest) <= 100


def test_an_architecture_that_fails_on_shared_prompts_is_given_each_answer_by_itself():
    scored, sequences = Scored(CONFIGS["full"]), answered(2, 2)

    def refuse(module, inputs, named) -> None:
        if named["position_ids"] is not None:
            raise IndexError("too many dimensions for this mask")

    scored.engine._module.register_forward_pre_hook(refuse, with_kwargs=True)
    together = scored.rewards(sequences)
    assert together == pytest.approx([scored.rewards([one])[0] for one in sequences], abs=1e-5)
    assert scored.notes == ["this architecture cannot share prompts: each answer is computed with its own"]
