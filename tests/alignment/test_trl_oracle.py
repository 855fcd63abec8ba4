"""Losses equal TRL 1.16's trainers' on the same batch (TRL is a dependency of the tests only).

TRL is no oracle for cDPO (its `sigmoid` ignores label smoothing), for IPO on sums of log-probs (its are means), nor for
SFT terms of several pairs (it averages over the tokens of a batch, we over each response's first): those have closed
forms in test_pair_losses.py.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, LlamaConfig, LlamaForCausalLM

from steerboard_contracts.methods import needed_method
from steerboard_workers.alignment.attention import PADDING_FREE
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.methods import training_of
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


# What a method is called there, and its config in both.
DPO_LOSSES = [
    ("dpo", {}, {"loss_types": ["sigmoid"], "beta": 0.1}),
    ("dpo", {"beta": 0.7}, {"loss_types": ["sigmoid"], "beta": 0.7}),
    ("dpo", {"reduction": "mean"}, {"loss_types": ["sigmoid_norm"], "beta": 5.0}),
    ("ipo", {"reduction": "mean", "tau": 0.3}, {"loss_types": ["ipo"], "beta": 0.3}),
    ("robust_dpo", {"label_smoothing": 0.2}, {"loss_types": ["robust"], "beta": 0.1, "label_smoothing": 0.2}),
    ("hinge", {"beta": 0.3}, {"loss_types": ["hinge"], "beta": 0.3}),
    ("mpo", {}, {"loss_types": ["sigmoid", "bco_pair", "sft"], "loss_weights": [0.8, 0.2, 1.0], "beta": 0.1}),
]


@pytest.fixture(scope="module")
def dpo_trainer(own_tokenizer, tmp_path_factory):
    """TRL's trainer of a policy with another reference, both without dropout."""
    torch.manual_seed(0)
    vocabulary, pad = len(own_tokenizer), own_tokenizer.pad_token_id
    model, reference = (LlamaForCausalLM(LlamaConfig(vocab_size=vocabulary, pad_token_id=pad, **CONFIG)) for _ in "ab")
    rows = {"prompt": ["bread?"], "chosen": [" flour"], "rejected": [" salt"]}
    return trl.DPOTrainer(
        model=model.eval(),
        ref_model=reference.eval(),
        args=trl.DPOConfig(**arguments(tmp_path_factory.mktemp("trl")), gradient_checkpointing=False),
        train_dataset=datasets.Dataset.from_dict(rows),
        processing_class=own_tokenizer,
    )


def with_reference(module: PolicyModule, batch: list[Example]) -> list[Example]:
    cutter = Batcher("padded", "labels", 10_000, module.model.config.pad_token_id)
    with torch.no_grad():
        log_probs = module(**cutter.collate(batch).model_inputs())[0].split(
            [len(r) for e in batch for r in e.responses]
        )
    sums = np.array([values.sum().item() for values in log_probs], dtype=np.float32).reshape(-1, 2)
    return [replace(e, frozen_log_probs={"reference": pair}) for e, pair in zip(batch, sums, strict=True)]


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize(("name", "ours", "theirs"), DPO_LOSSES)
def test_losses_of_pairs_with_a_reference_equal_trls(
    dpo_trainer, own_tokenizer, monkeypatch, name, ours, theirs, share
):
    for field, value in ({"loss_weights": [1.0], "label_smoothing": 0.0} | theirs).items():
        monkeypatch.setattr(dpo_trainer, field, value)
    model = dpo_trainer.model.eval()
    model.set_attn_implementation("sdpa")
    batch = with_reference(PolicyModule(dpo_trainer.ref_model.eval()), examples(len(own_tokenizer), 2))
    if name == "mpo":
        batch = batch[:1]  # TRL's SFT averages over the tokens of a batch
    rows = [
        {
            "prompt_ids": e.prompt.tolist(),
            "chosen_ids": e.responses[0].tolist(),
            "rejected_ids": e.responses[1].tolist(),
        }
        for e in batch
    ]
    with torch.no_grad():
        expected = dpo_trainer.compute_loss(model, dpo_trainer.data_collator(rows)).item()
    objective = training_of(needed_method(name).config(method=name, **ours)).objective()
    assert our_loss(PolicyModule(model), objective, batch, share=share) == pytest.approx(expected, rel=1e-5)


def test_losses_of_means_of_log_probs_equal_trls():
    """SimPO's margin is gamma there; ORPO's SFT is over prompts as well there."""
    from trl.experimental.cpo import CPOTrainer
    from trl.experimental.orpo import ORPOTrainer

    draw = torch.Generator().manual_seed(0)
    chosen, rejected = -3 * torch.rand(2, 8, generator=draw)
    trainer = SimpleNamespace(accelerator=SimpleNamespace(device="cpu"), label_smoothing=0.0, alpha=0.0)
    trainer.loss_type, trainer.beta, trainer.simpo_gamma = "simpo", 2.5, 1.375
    simpo = training_of(needed_method("simpo").config(method="simpo", gamma_beta_ratio=0.55))
    expected = CPOTrainer.cpo_loss(trainer, chosen, rejected)[0]
    torch.testing.assert_close(simpo.loss(chosen, rejected), expected)
    trainer.beta = 0.1
    orpo = training_of(needed_method("orpo").config(method="orpo"))
    responses = SimpleNamespace(means=torch.stack([chosen, rejected], 1).flatten())
    odds = orpo.score(responses).view(-1, 2).unbind(1)
    torch.testing.assert_close(orpo.loss(*odds), -ORPOTrainer.odds_ratio_loss(trainer, chosen, rejected)[0])
