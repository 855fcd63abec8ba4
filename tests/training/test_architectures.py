"""What a batch may share or skip is tried out for each architecture, and the plain way is taken where it fails."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState
from running import recorded
from transformers import (
    AttentionInterface,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    Gemma2Config,
    GPT2Config,
    Llama4TextConfig,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Qwen3Config,
    Qwen3MoeConfig,
)
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from steerboard_contracts.methods.dpo import DpoConfig
from steerboard_contracts.methods.reward_model import RewardModelConfig
from steerboard_contracts.methods.rloo import RlooConfig
from steerboard_contracts.methods.sft import SftConfig
from steerboard_workers.alignment.batches import layouts
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.divergence import Compared, Comparison
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.head import read_logits
from steerboard_workers.alignment.methods.dpo import Dpo
from steerboard_workers.alignment.methods.kto import KtoObjective
from steerboard_workers.alignment.modules import PolicyModule, RewardModule
from steerboard_workers.alignment.objectives import Objective
from steerboard_workers.alignment.online.objective import ADVANTAGES, PolicyGradientObjective, Turn
from steerboard_workers.stages.distributed.choice import strategy_of
from steerboard_workers.stages.training.setup import batcher_of, follow_autocast
from support.models.tiny_shape import SHAPE

CONFIGS = {
    "llama": LlamaConfig(**SHAPE),
    "qwen3": Qwen3Config(**SHAPE),
    "mistral": MistralConfig(**SHAPE, sliding_window=16),
    "gemma2": Gemma2Config(**SHAPE, sliding_window=64, final_logit_softcapping=2.0),
    "mixtral": MixtralConfig(**SHAPE, num_local_experts=4),
    "qwen3_moe": Qwen3MoeConfig(**SHAPE, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=32),
    "gpt2": GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=128, pad_token_id=0, num_labels=1),
}


def examples(responses: int) -> list[Example]:
    draw = np.random.default_rng(3)

    def ids(low: int, high: int):
        return draw.integers(3, 64, draw.integers(low, high)).astype(np.int32)

    return [Example(row, ids(4, 20), tuple(ids(1, 12) for _ in range(responses))) for row in range(8)]


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("batching", ["padded", "packed", "padding_free"])
def test_log_probs_are_the_models_own_whatever_the_architecture(make_stage, name, batching):
    torch.manual_seed(0)
    module = PolicyModule(AutoModelForCausalLM.from_config(CONFIGS[name])).eval()
    batch = examples(1)
    stage = make_stage({"run": "mix", "parts": [{}]}, data=None)
    batcher = batcher_of(stage, SftConfig(method="sft", batching=batching), module, batch, 0, torch.device("cpu"))
    assert module.whole_head == (name == "gemma2")  # its logits are capped after the head
    with torch.no_grad():
        micro = batcher.collate(batch)
        ours = module(**micro.model_inputs())[0]
        theirs = []
        for example in batch:
            full = torch.from_numpy(np.concatenate([example.prompt, example.responses[0]])).long()
            start = len(example.prompt)
            logits = module.model(input_ids=full[None]).logits[0]
            theirs.append(read_logits(logits[start - 1 : -1], full[start:])[0])
    torch.testing.assert_close(ours, torch.cat(theirs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("student", "teacher"), [("llama", "gemma2"), ("gemma2", "mistral"), ("gpt2", "llama")])
def test_distributions_of_two_architectures_are_compared_each_laid_out_in_its_own_way(make_stage, student, teacher):
    """Cases include logits that are capped after the head, and padding that one takes and the other does without."""
    torch.manual_seed(0)
    modules = [PolicyModule(AutoModelForCausalLM.from_config(CONFIGS[name])).eval() for name in (student, teacher)]
    batch = examples(1)
    stage = make_stage({"run": "mix", "parts": [{}]}, data=None)
    config, cpu = SftConfig(method="sft", batching="auto"), torch.device("cpu")
    ours, theirs = (batcher_of(stage, config, module, batch, 0, cpu).collate(batch) for module in modules)
    with torch.no_grad():
        states = modules[1](**theirs.model_inputs(), probe="states")
    comparison = Comparison(states, modules[1].logits, 1.0)
    compared = Compared(*modules[0](**replace(ours, comparison=comparison).model_inputs()))
    log_q, log_p = (torch.cat([_log_probs(module, example) for example in batch]) for module in modules)
    expected = (log_q.exp() * (log_q - log_p)).sum(-1)
    torch.testing.assert_close(compared.divergences, expected, rtol=1e-3, atol=1e-5)
    parameters = [p for p in modules[0].parameters() if p.requires_grad]
    wanted = torch.autograd.grad(expected.sum(), parameters, allow_unused=True)
    for own, want in zip(
        torch.autograd.grad(compared.divergences.sum(), parameters, allow_unused=True), wanted, strict=True
    ):
        if want is not None:
            torch.testing.assert_close(own, want, rtol=1e-2, atol=1e-4)


def _log_probs(module: PolicyModule, example: Example) -> torch.Tensor:
    """(labels, V) before each token of the response, of the model's own forward."""
    full = torch.from_numpy(np.concatenate([example.prompt, example.responses[0]])).long()
    logits = module.model(input_ids=full[None]).logits[0]
    return logits[len(example.prompt) - 1 : -1].log_softmax(-1)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("batching", ["padded", "packed", "padding_free"])
def test_rewards_are_the_models_own_whatever_the_architecture(make_stage, name, batching):
    torch.manual_seed(0)
    module = RewardModule(AutoModelForSequenceClassification.from_config(CONFIGS[name])).eval()
    batch = examples(2)
    stage = make_stage({"run": "mix", "parts": [{}]}, data=None)
    config = RewardModelConfig(method="reward_model", batching=batching)
    batcher = batcher_of(stage, config, module, batch, 0, torch.device("cpu"), share=True)
    # These examples are longer than mistral's window; gemma2's eager attention would add a boolean mask.
    apart = name in ("mistral", "gemma2")
    assert batcher.share != apart
    assert bool(recorded(stage, "log")) == apart
    if batching == "padding_free":
        assert batcher.layout == ("padded" if apart else "padding_free")
    plain = Batcher("padded", "ends", 10_000, 0)
    with torch.no_grad():
        ours = module(**batcher.collate(batch).model_inputs())
        alone = torch.cat([module(**plain.collate([example]).model_inputs()) for example in batch])
    torch.testing.assert_close(ours, alone, rtol=1e-4, atol=1e-4)


def batcher_in_training(make_stage, model, precision: str) -> tuple[Batcher, bool | None]:
    """The batcher as a training run finds it, where forwards return float32 though they round to bf16 inside."""
    torch.manual_seed(0)
    if model.can_generate():
        module, config = PolicyModule(model), DpoConfig(method="dpo", precision=precision)
    else:
        module, config = RewardModule(model), RewardModelConfig(method="reward_model", precision=precision)
    model.get_input_embeddings().register_forward_hook(follow_autocast)
    sharing = strategy_of(config, "cpu")
    sharing.share(module.eval())
    stage = make_stage({"run": "mix", "parts": [{}]}, data=None)
    batcher = batcher_of(stage, config, module, examples(2), 0, torch.device("cpu"), sharing.module, share=True)
    AcceleratorState._reset_state(reset_partial_state=True)
    return batcher, getattr(module, "whole_head", None)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("kind", [AutoModelForCausalLM, AutoModelForSequenceClassification])
def test_a_run_in_bf16_lays_out_as_one_in_float32(make_stage, name, kind):
    batchers = [
        batcher_in_training(make_stage, kind.from_config(CONFIGS[name]), precision) for precision in ("fp32", "bf16")
    ]
    (exact, exact_head), (rounded, rounded_head) = batchers
    assert (rounded.layout, rounded.share, rounded_head) == (exact.layout, exact.share, exact_head)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_sequences_that_would_see_each_other_are_laid_out_apart(make_stage, monkeypatch, precision):
    def as_one(module, query, key, value, attention_mask, **options):
        return sdpa_attention_forward(module, query, key, value, None, is_causal=True)

    AttentionInterface.register("as_one", as_one)
    monkeypatch.setattr(layouts, "PADDING_FREE", "as_one")
    batcher, _ = batcher_in_training(make_stage, AutoModelForCausalLM.from_config(CONFIGS["llama"]), precision)
    assert batcher.layout == "padded"


CHUNKED = {**SHAPE, "intermediate_size_mlp": 64, "num_local_experts": 2, "no_rope_layers": [1, 0]}
ATTENTION = {
    "full": LlamaConfig(**SHAPE),
    "wide_window": MistralConfig(**SHAPE, sliding_window=64),
    "narrow_window": MistralConfig(**SHAPE, sliding_window=16),
    "wide_chunks": Llama4TextConfig(**CHUNKED, attention_chunk_size=64),
    "narrow_chunks": Llama4TextConfig(**CHUNKED, attention_chunk_size=16),
}


def pairs() -> tuple[Objective, list[Example]]:
    draw = np.random.default_rng(1)
    log_probs = [{"reference": draw.normal(-30, 3, 2).astype(np.float32)} for _ in range(8)]
    batch = [replace(e, frozen_log_probs=values) for e, values in zip(examples(2), log_probs, strict=True)]
    return Dpo(DpoConfig(method="dpo")).objective(), batch


def thumbs() -> tuple[Objective, list[Example]]:
    """One thumb of each side of a pair."""
    batch = [
        replace(
            pair,
            responses=(pair.responses[side],),
            frozen_log_probs={"reference": pair.frozen_log_probs["reference"][side : side + 1]},
            weight=weight,
        )
        for pair in pairs()[1]
        for side, weight in enumerate((1.0, -1.5))
    ]
    return KtoObjective(0.1), batch


def groups() -> tuple[Objective, list[Example]]:
    """Four answers to a prompt."""
    draw = np.random.default_rng(1)
    batch = [
        replace(e, token_values={ADVANTAGES: tuple(draw.normal(0, 1, n).astype(np.float32) for n in e.label_counts)})
        for e in examples(4)
    ]
    return PolicyGradientObjective(RlooConfig(method="rloo"), Turn(), 12), batch


@pytest.mark.parametrize("name", ATTENTION)
@pytest.mark.parametrize("of_method", [pairs, thumbs, groups])
def test_a_prompt_is_shared_where_that_is_exact_and_it_is_said_where_not(make_stage, name, of_method):
    """Loss and gradient of each example alone, to 1e-5 in float32, with full, sliding-window and chunked attention."""
    torch.manual_seed(0)
    module = PolicyModule(AutoModelForCausalLM.from_config(ATTENTION[name])).eval()
    objective, batch = of_method()
    stage = make_stage({"run": "mix", "parts": [{}]}, data=None)
    config = DpoConfig(method="dpo", batching="auto")
    batcher = batcher_of(stage, config, module, batch, 0, torch.device("cpu"), share=True)
    assert batcher.shares(batch) != name.startswith("narrow")
    said = [e.message for e in recorded(stage, "log")]
    assert ["attention sees 16 of them" in line for line in said] == ([] if batcher.share else [True])
    plain = Batcher("padded", "labels", 10_000, 0, micro_batch=1)
    results = [loss_and_gradient(module, cutter, batch, objective) for cutter in (batcher, plain)]
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-5)
    scale = results[1][1].abs().max().item()
    torch.testing.assert_close(results[0][1], results[1][1], rtol=0, atol=1e-5 * scale)


def loss_and_gradient(module: PolicyModule, cutter: Batcher, batch: list[Example], objective: Objective):
    module.zero_grad()
    total = 0.0
    for part in cutter.cut(batch)[0]:
        micro = replace(cutter.collate(part), prepared={"kl": torch.tensor(0.3), "z": torch.tensor(0.3)})
        loss, _ = objective.forward(module(**micro.model_inputs()), micro)
        loss.backward()
        total += loss.item()
    return total, torch.cat([p.grad.flatten() for p in module.parameters() if p.grad is not None])


def test_an_architecture_that_cannot_isolate_sequences_is_not_packed(make_stage):
    class Leaky(RewardModule):
        """Stands for an attention implementation that ignores position ids."""

    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(CONFIGS["llama"]).eval()
    body = model.base_model.forward

    def forward(input_ids, position_ids=None, attention_mask=None, **options):
        return body(input_ids=input_ids, attention_mask=None, **options)

    model.base_model.forward = forward
    stage = make_stage({"run": "mix", "parts": [{}]}, data=None)
    config = RewardModelConfig(method="reward_model", batching="packed")
    batcher = batcher_of(stage, config, Leaky(model), examples(2), 0, torch.device("cpu"), share=True)
    assert (batcher.layout, batcher.share) == ("padded", False)
    assert len(recorded(stage, "log")) == 3
