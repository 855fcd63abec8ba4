"""Replayed routes are followed exactly, in every layout, and those that a model chose itself change nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import (
    MixtralConfig,
    MixtralForCausalLM,
    OlmoeConfig,
    OlmoeForCausalLM,
    Qwen2MoeConfig,
    Qwen2MoeForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from steerboard_workers.alignment.attention import PADDING_FREE
from steerboard_workers.alignment.batches.batch_source import pack_examples, unpack_examples
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.modules import PolicyModule
from steerboard_workers.alignment.replay import differing
from steerboard_workers.alignment.routers import Routers
from support.models.tiny_shape import SHAPE

EXPERTS, K, LAYERS = 6, 2, SHAPE["num_hidden_layers"]
LAYOUTS = [("padded", False), ("padded", True), ("packed", False), ("packed", True)]
LAYOUTS += [("padding_free", False), ("padding_free", True)]


def model_of(family: str, **more: object) -> nn.Module:
    torch.manual_seed(0)
    shape = {**SHAPE, "num_experts_per_tok": K, "moe_intermediate_size": 16, "intermediate_size": 16, **more}
    if family == "mixtral":
        return MixtralForCausalLM(MixtralConfig(**shape, num_local_experts=EXPERTS)).eval()
    if family == "qwen2_moe":
        shape |= {"shared_expert_intermediate_size": 16, "num_experts": EXPERTS}
        return Qwen2MoeForCausalLM(Qwen2MoeConfig(**shape)).eval()
    if family == "olmoe":
        return OlmoeForCausalLM(OlmoeConfig(**shape, num_experts=EXPERTS)).eval()
    return Qwen3MoeForCausalLM(Qwen3MoeConfig(**shape, num_experts=EXPERTS)).eval()


def module_of(family: str) -> tuple[PolicyModule, Routers]:
    module = PolicyModule(model_of(family, norm_topk_prob=True))
    routers = Routers.of(module.model)
    assert routers is not None
    module.routers = routers
    return module, routers


def examples_of(prompts: int = 4, answers: int = 3) -> list[Example]:
    draw = np.random.default_rng(0)

    def ids(low: int, high: int) -> np.ndarray:
        return draw.integers(1, SHAPE["vocab_size"], draw.integers(low, high)).astype(np.int32)

    return [
        Example(row, prompt, (ids(2, 9),))
        for row, prompt in enumerate(ids(4, 20) for _ in range(prompts))
        for _ in range(answers)
    ]


def own_routes(module: PolicyModule, routers: Routers, example: Example) -> np.ndarray:
    """(tokens, layers, k) of the sequence by itself, as the model routes it, without the last token."""
    ids = torch.from_numpy(np.concatenate([example.prompt, example.responses[0]])).long()[None]
    routers.replay(None)
    with torch.no_grad(), routers.recording() as routes:
        module.model(input_ids=ids)
    return torch.stack([layer.chosen for layer in routes], dim=1).numpy().astype(np.uint8)[:-1]


def other_routes(examples: list[Example], by: str = "prompt") -> list[Example]:
    """Random distinct experts for each token; those of equal prompts are alike, or by the "answer" they are not."""
    routed = []
    for place, example in enumerate(examples):
        draws = [np.random.default_rng([example.row, 0 if by == "prompt" else place]), np.random.default_rng(place)]
        lengths = len(example.prompt), len(example.responses[0]) - 1
        parts = [
            np.argsort(draw.random((length, LAYERS, EXPERTS)), axis=-1)[..., :K]
            for draw, length in zip(draws, lengths, strict=True)
        ]
        routed.append(replace(example, routes=(np.concatenate(parts).astype(np.uint8),)))
    return routed


def batcher_of(layout: str, share: bool) -> Batcher:
    return Batcher(layout, "labels", 100_000, 0, share=share, replays=True)


def learned(module: PolicyModule, examples: list[Example], layout: str, share: bool) -> tuple[Tensor, dict, Tensor]:
    """(loss, gradients, log-probs) of a pass over all of them; log-probs in the order of the examples."""
    if layout == "padding_free":
        module.model.set_attn_implementation(PADDING_FREE)
    batcher = batcher_of(layout, share)
    (part,) = batcher.cut(examples)[0]
    batch = batcher.collate(part)
    module.zero_grad()
    log_probs, _ = module(**batch.model_inputs())
    weights = torch.linspace(0.5, 1.5, len(log_probs))
    loss = -(log_probs * weights).sum()
    loss.backward()
    pieces = dict(zip(map(id, part), log_probs.detach().split(batch.label_counts.int().tolist()), strict=True))
    gradients = {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}
    return loss.detach(), gradients, torch.cat([pieces[id(example)] for example in examples])


def by_hand(module: PolicyModule, examples: list[Example]) -> Tensor:
    """Log-probs of the answers, each by itself, with experts computed one token after the other."""
    of_all = []
    for example in examples:
        ids = torch.from_numpy(np.concatenate([example.prompt, example.responses[0]])).long()
        hooks = []
        for number, layer in enumerate(module.model.model.layers):
            routes = torch.from_numpy(example.routes[0][:, number].astype(np.int64))
            hooks.append(layer.mlp.register_forward_hook(_plain_layer(layer.mlp, routes)))
        logits = module.model(input_ids=ids[None]).logits[0]
        for hook in hooks:
            hook.remove()
        start = len(example.prompt)
        picked = logits[start - 1 : -1].log_softmax(-1).gather(1, ids[start:, None])
        of_all.append(picked.squeeze(1))
    return torch.cat(of_all)


def _plain_layer(mlp: nn.Module, routes: Tensor):
    def instead(_: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        states, own = inputs[0][0], output[0]
        rows = []
        for place, chosen in enumerate(routes):
            logits = mlp.gate.weight @ states[place]
            gates = logits[chosen].softmax(-1)
            row = torch.zeros_like(states[place])
            for gate, expert in zip(gates, chosen, strict=True):
                up = mlp.experts.gate_up_proj[expert] @ states[place]
                half = len(up) // 2
                row = row + gate * (mlp.experts.down_proj[expert] @ (nn.functional.silu(up[:half]) * up[half:]))
            rows.append(row)
        return torch.stack([*rows, own[-1]])[None]  # the last token's is not read

    return instead


@pytest.mark.parametrize("family", ["mixtral", "qwen3_moe"])
@pytest.mark.parametrize(("layout", "share"), LAYOUTS)
def test_own_routes_change_no_bit_of_loss_and_gradients(family, layout, share):
    module, routers = module_of(family)
    plain = examples_of()
    routed = [replace(example, routes=(own_routes(module, routers, example),)) for example in plain]
    without = learned(module, plain, layout, share)
    batcher = batcher_of(layout, share)
    assert batcher.shares(routed) == share
    replayed = learned(module, routed, layout, share)
    assert torch.equal(replayed[0], without[0])
    assert replayed[1].keys() == without[1].keys()
    for name, gradient in without[1].items():
        assert torch.equal(replayed[1][name], gradient), name


@pytest.mark.parametrize("family", ["mixtral", "qwen3_moe"])
@pytest.mark.parametrize(("layout", "share"), LAYOUTS)
@pytest.mark.parametrize("by", ["prompt", "answer"])
def test_routes_of_another_choice_are_followed_as_by_a_plain_loop(family, layout, share, by):
    module, routers = module_of(family)
    examples = other_routes(examples_of(), by)
    routers.replay(None)
    expected = by_hand(module, examples)
    (-expected).sum().backward()
    by_loop = {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}
    assert batcher_of(layout, share).shares(examples) == (share and by == "prompt")
    _, _, log_probs = learned(module, examples, layout, share)
    torch.testing.assert_close(log_probs, expected.detach(), rtol=1e-4, atol=1e-5)
    batch = batcher_of(layout, share).collate(batcher_of(layout, share).cut(examples)[0][0])
    module.zero_grad()
    (-module(**batch.model_inputs())[0]).sum().backward()
    for name, gradient in by_loop.items():
        own = dict(module.named_parameters())[name].grad
        torch.testing.assert_close(own, gradient, rtol=1e-3, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}")
        assert not name.endswith("mlp.gate.weight") or gradient.abs().max() > 1e-3


def test_a_checkpointed_pass_computes_again_by_the_same_routes():
    module, _ = module_of("qwen3_moe")
    examples = other_routes(examples_of())
    _, plain, _ = learned(module, examples, "padded", False)
    module.train()
    module.model.gradient_checkpointing_enable({"use_reentrant": False})
    _, again, _ = learned(module, examples, "padded", False)
    for name, gradient in plain.items():
        torch.testing.assert_close(again[name], gradient)


def test_a_pass_without_routes_leaves_the_choice_to_the_router_again():
    module, _ = module_of("mixtral")
    examples = examples_of()
    before = learned(module, examples, "padded", False)[0]
    other = learned(module, other_routes(examples), "padded", False)[0]
    assert not torch.equal(other, before)
    assert torch.equal(learned(module, examples, "padded", False)[0], before)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("family", ["mixtral", "olmoe", "qwen2_moe", "qwen3_moe"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_gate_is_the_models_own_where_it_made_the_choice(family, normalised, dtype):
    model = model_of(family, norm_topk_prob=normalised).to(dtype)
    routers = Routers.of(model)
    assert routers is not None
    assert routers.replays
    states = torch.randn(9, SHAPE["hidden_size"], dtype=dtype)
    own = routers.modules[0](states)
    routers.replay(own[2][None])
    replayed = routers.modules[0](states)
    assert replayed[1].dtype == own[1].dtype
    assert all(torch.equal(a, b) for a, b in zip(replayed, own, strict=True))


def test_what_differs_is_the_set_of_experts_and_not_their_order():
    own = torch.tensor([[0, 1], [2, 3], [4, 5], [0, 5]])
    chosen = torch.tensor([[1, 0], [2, 4], [4, 5], [1, 2]])
    known = torch.tensor([True, True, True, False])
    assert differing(own, chosen, known).tolist() == [False, True, False, False]


def test_a_checkpoint_keeps_the_routes_of_examples():
    (example, *_) = other_routes(examples_of())
    (back,) = unpack_examples(pack_examples([example]))
    assert np.array_equal(back.routes[0], example.routes[0])
    assert back.routes[0].dtype == example.routes[0].dtype
