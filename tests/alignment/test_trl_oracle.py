"""The SFT and reward losses equal TRL 1.16's trainers' on the same batch (TRL is a dependency of the tests only)."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, LlamaConfig, LlamaForCausalLM

from steerboard_workers.alignment.attention import PADDING_FREE
from steerboard_workers.alignment.batching import Batcher
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.methods.reward_model import RewardObjective
from steerboard_workers.alignment.modules import PolicyModule, RewardModule
from steerboard_workers.alignment.objectives import LanguageObjective

trl = pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")

CONFIG = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": 128,
    "num_labels": 1,
    "initializer_range": 0.1,
}


@pytest.fixture
def config(own_tokenizer):
    return LlamaConfig(vocab_size=len(own_tokenizer), pad_token_id=own_tokenizer.pad_token_id, **CONFIG)


def examples(vocabulary: int, responses: int) -> list[Example]:
    draw = np.random.default_rng(0)

    def ids(low: int, high: int):
        return draw.integers(4, vocabulary, draw.integers(low, high)).astype(np.int32)

    return [
        Example(row, ids(3, 20), tuple(ids(1, 15) for _ in range(responses)), margin=float(row) / 7) for row in range(6)
    ]


def joined(example: Example, side: int) -> list[int]:
    return [*example.prompt.tolist(), *example.responses[side].tolist()]


def our_loss(module, objective, batch, layout="padded", share=False) -> float:
    module.model.set_attn_implementation(PADDING_FREE if layout == "padding_free" else "sdpa")
    cutter = Batcher(layout, objective.reads, 10_000, module.model.config.pad_token_id, share=share)
    micro = cutter.collate(batch)
    return objective.forward(module(**micro.model_inputs()), micro)[0].item() / objective.count(batch)


def arguments(tmp_path):
    return {"output_dir": str(tmp_path), "use_cpu": True, "bf16": False, "report_to": "none", "max_length": 128}


@pytest.mark.parametrize("layout", ["padded", "packed", "padding_free"])
def test_sft_loss_equals_trls(config, own_tokenizer, tmp_path, layout):
    torch.manual_seed(0)
    model = LlamaForCausalLM(config).eval()
    batch = examples(len(own_tokenizer), 1)
    rows = datasets.Dataset.from_dict(
        {
            "input_ids": [joined(e, 0) for e in batch],
            "completion_mask": [[0] * len(e.prompt) + [1] * len(e.responses[0]) for e in batch],
        }
    )
    trainer = trl.SFTTrainer(
        model=copy.deepcopy(model),
        args=trl.SFTConfig(**arguments(tmp_path), completion_only_loss=True, gradient_checkpointing=False),
        train_dataset=rows,
        processing_class=own_tokenizer,
    )
    inputs = trainer.data_collator([trainer.train_dataset[i] for i in range(len(batch))])
    with torch.no_grad():
        theirs = trainer.compute_loss(trainer.model.eval(), inputs).item()
    assert our_loss(PolicyModule(model), LanguageObjective(), batch, layout) == pytest.approx(theirs, rel=1e-5)


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize(("margin", "centre"), [(False, 0.0), (True, 0.0), (True, 0.1)])
def test_reward_loss_equals_trls(config, own_tokenizer, tmp_path, share, margin, centre):
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    batch = examples(len(own_tokenizer), 2)
    columns = {"chosen_ids": [joined(e, 0) for e in batch], "rejected_ids": [joined(e, 1) for e in batch]}
    if margin:
        columns["margin"] = [e.margin for e in batch]
    trainer = trl.RewardTrainer(
        model=copy.deepcopy(model),
        args=trl.RewardConfig(
            **arguments(tmp_path), center_rewards_coefficient=centre or None, gradient_checkpointing=False
        ),
        train_dataset=datasets.Dataset.from_dict(columns),
        processing_class=own_tokenizer,
    )
    inputs = trainer.data_collator([trainer.train_dataset[i] for i in range(len(batch))])
    with torch.no_grad():
        theirs = trainer.compute_loss(trainer.model.eval(), inputs).item()
    ours = our_loss(RewardModule(model), RewardObjective(centre, margin), batch, share=share)
    assert ours == pytest.approx(theirs, rel=1e-5)
