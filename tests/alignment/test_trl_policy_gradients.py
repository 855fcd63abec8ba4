"""Losses and gradients of policy gradients equal those of TRL 1.16's trainers, where the formula is the same.

GRPO's three reducers, ratios of sequences, bounded weights and gates, with k3 in the loss (TRL's own default multiplies
the KL by the ratio, which is turned off). RLOO's trainer clips the ratio of a whole answer, and ours
that of each token, so these agree where all ratios are 1: in gradients, and up to the longest answer, by which ours is
divided. Advantages have another constant that keeps their division finite (1e-4 there).
"""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from steerboard_contracts.methods import needed_method
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.alignment.modules import PolicyModule
from steerboard_workers.alignment.online.answers import Answers
from steerboard_workers.alignment.online.objective import ADVANTAGES, OLD, REFERENCE, PolicyGradientObjective, Turn

trl = pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")
pytestmark = pytest.mark.long

LONGEST = 14
KL, LOW, HIGH = 0.1, 0.2, 0.28


@pytest.fixture
def model(own_tokenizer):
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(own_tokenizer),
            pad_token_id=own_tokenizer.pad_token_id,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=128,
            initializer_range=0.1,
        )
    ).eval()


def answered(vocabulary: int, on_policy: bool, model) -> list[Example]:
    """Answers of different lengths, with log-probs before the update that make some ratios leave their bounds."""
    draw = np.random.default_rng(0)
    examples = []
    for row in range(6):
        prompt = draw.integers(4, vocabulary, draw.integers(3, 9)).astype(np.int32)
        ids = draw.integers(4, vocabulary, draw.integers(2, LONGEST)).astype(np.int32)
        whole = torch.from_numpy(np.concatenate([prompt, ids]).astype(np.int64))[None]
        with torch.no_grad():
            logits = model(whole).logits[0, len(prompt) - 1 : -1]
        now = logits.log_softmax(-1).gather(1, whole[0, len(prompt) :, None])[:, 0].numpy()
        away = 0 if on_policy else draw.normal(0, 0.3, len(ids))
        values = {
            OLD: (now + away).astype(np.float32),
            REFERENCE: (now + draw.normal(0, 0.5, len(ids))).astype(np.float32),
            ADVANTAGES: np.full(len(ids), draw.normal(), np.float32),
        }
        examples.append(Example(row, prompt, (ids,), token_values={name: (value,) for name, value in values.items()}))
    return examples


def ours(model, batch: list[Example], **config) -> tuple[float, dict[str, torch.Tensor]]:
    model.zero_grad()
    config = needed_method(config["method"]).config.model_validate(config)
    objective = PolicyGradientObjective(config, Turn(), LONGEST)
    module = PolicyModule(model)
    micro = Batcher("padded", "labels", 10_000, model.config.pad_token_id).collate(batch)
    loss = objective.forward(module(**micro.model_inputs()), micro)[0] / objective.count(batch)
    loss.backward()
    return loss.item(), {name: p.grad.clone() for name, p in model.named_parameters()}


def inputs_of(batch: list[Example], pad: int) -> dict[str, torch.Tensor]:
    width, longest = max(len(e.prompt) for e in batch), max(len(e.responses[0]) for e in batch)

    def left(values, fill=0):
        return torch.tensor([[fill] * (width - len(v)) + [int(x) for x in v] for v in values])

    def right(values, fill=0.0, kind=torch.float32):
        return torch.tensor([[*v, *[fill] * (longest - len(v))] for v in (list(v) for v in values)], dtype=kind)

    answers = [e.responses[0] for e in batch]
    of = {name: [e.token_values[name][0] for e in batch] for name in (OLD, REFERENCE, ADVANTAGES)}
    return {
        "prompt_ids": left([e.prompt for e in batch], pad),
        "prompt_mask": left([np.ones(len(e.prompt)) for e in batch]),
        "completion_ids": right(answers, pad, torch.long),
        "completion_mask": right([np.ones(len(a)) for a in answers], 0, torch.long),
        "advantages": torch.tensor([float(v[0]) for v in of[ADVANTAGES]]),
        "old_per_token_logps": right(of[OLD]),
        "ref_per_token_logps": right(of[REFERENCE]),
        "old_logps": torch.tensor([float(v.sum()) for v in of[OLD]]),
        "num_items_in_batch": torch.tensor(sum(len(a) for a in answers)),
    }


def theirs(name: str, model, batch: list[Example], tokenizer, folder, **config):
    rows = datasets.Dataset.from_dict({"prompt": ["a"] * 8})
    arguments = getattr(trl, f"{name}Config")(
        output_dir=str(folder),
        use_cpu=True,
        bf16=False,
        report_to="none",
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=LONGEST,
        **{"epsilon": LOW, "epsilon_high": HIGH, "beta": 0.0, **config},
    )
    trained = copy.deepcopy(model)
    trainer = getattr(trl, f"{name}Trainer")(
        model=trained,
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=arguments,
        train_dataset=rows,
        processing_class=tokenizer,
    )
    trainer.current_gradient_accumulation_steps = 1
    trainer.beta = KL  # after the trainer's start, which would load a reference of its own
    trained.eval()
    trained.zero_grad()
    loss = trainer._compute_loss(trained, inputs_of(batch, tokenizer.pad_token_id))
    loss.backward()
    return loss.item(), {name: p.grad for name, p in trained.named_parameters()}


@pytest.mark.parametrize(("reducer", "loss_type"), [("sequence", "grpo"), ("token", "bnpo"), ("constant", "dr_grpo")])
def test_grpos_loss_and_gradient_equal_trls(model, own_tokenizer, tmp_path, reducer, loss_type):
    batch = answered(len(own_tokenizer), False, model)
    config = {"kl_weight": KL, "kl_estimator": "k3", "clip_low": LOW, "clip_high": HIGH}
    loss, gradients = ours(model, batch, method="grpo", reducer=reducer, **config)
    expected, others = theirs(
        "GRPO", model, batch, own_tokenizer, tmp_path, loss_type=loss_type, use_bias_correction_kl=False
    )
    assert loss == pytest.approx(expected, rel=1e-5)
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, others[name], rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    ("method", "changes", "named"),
    [
        ("gspo", {}, {"loss_type": "grpo", "importance_sampling_level": "sequence"}),
        ("gspo", {"clip_low": 0.02, "clip_high": 0.03}, {"loss_type": "grpo", "importance_sampling_level": "sequence"}),
        ("cispo", {"clip_high": 0.4}, {"loss_type": "cispo", "epsilon_high": 1.4}),
        ("cispo", {}, {"loss_type": "cispo", "epsilon_high": 5.0}),
        ("dapo", {}, {"loss_type": "dapo"}),
        ("sapo", {}, {"loss_type": "sapo"}),
    ],
)
def test_policy_losses_and_their_gradients_equal_trls(model, own_tokenizer, tmp_path, method, changes, named):
    """The KL that TRL adds is included, which these methods leave out."""
    batch = answered(len(own_tokenizer), False, model)
    config = needed_method(method).config(method=method, **changes)
    loss, gradients = ours(model, batch, method=method, kl_weight=KL, kl_estimator="k3", **changes)
    bounds = {"epsilon": config.clip_low or LOW, "epsilon_high": config.clip_high or HIGH}
    expected, others = theirs(
        "GRPO", model, batch, own_tokenizer, tmp_path, use_bias_correction_kl=False, **{**bounds, **named}
    )
    assert loss == pytest.approx(expected, rel=1e-5)
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, others[name], rtol=1e-3, atol=1e-6)


def test_rloos_gradient_equals_trls_before_the_first_update(model, own_tokenizer, tmp_path):
    batch = answered(len(own_tokenizer), True, model)
    _, gradients = ours(model, batch, method="rloo", kl_weight=0.0, clip_low=LOW, clip_high=HIGH)
    _, others = theirs("RLOO", model, batch, own_tokenizer, tmp_path)
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient * LONGEST, others[name], rtol=1e-3, atol=1e-5)


def test_advantages_are_those_of_trls_formulas_but_for_what_keeps_a_division_finite():
    rewards = np.array([[1.0, 0, 0, 1], [0.3, 0.5, -1, 2]])
    answers = Answers(rewards, [np.zeros(1)] * 8)
    grpo, rloo = (
        np.concatenate(
            training_of(needed_method(name).config.model_validate({"method": name})).advantages(answers)
        ).reshape(2, 4)
        for name in ("grpo", "rloo")
    )
    mean, std = rewards.mean(1, keepdims=True), rewards.std(1, ddof=1, keepdims=True)
    np.testing.assert_allclose(grpo, (rewards - mean) / (std + 1e-4), rtol=1e-3)
    step = training_of(needed_method("grpo").config.model_validate({"method": "grpo", "scaling": "batch"}))
    whole = np.concatenate(step.advantages(answers)).reshape(2, 4)
    np.testing.assert_allclose(whole, (rewards - mean) / (rewards.std(ddof=1) + 1e-4), rtol=1e-3)
    np.testing.assert_allclose(rloo, rewards - (rewards.sum(1, keepdims=True) - rewards) / 3)
