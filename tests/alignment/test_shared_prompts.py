"""Methods that compute several responses behind one copy of their prompt have the loss and gradients of plain forwards.
The methods are those of the registry, so that a new one is covered by being there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification

from steerboard_contracts.methods import methods
from steerboard_contracts.online_config import OnlineConfig
from steerboard_workers.alignment.attention import PADDING_FREE
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.losses import sequence_sums
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.alignment.methods.ppo import RETURNS, VALUES
from steerboard_workers.alignment.modules import JointModule, PolicyModule, RewardModule
from steerboard_workers.alignment.objectives import BatchObjective
from steerboard_workers.alignment.online.objective import ADVANTAGES, OLD, REFERENCE, SAMPLER_WEIGHTS
from support.models.tiny_shape import SHAPE

TOLERANCE = 1e-5
SHARING = [name for name, spec in methods().items() if training_of(spec.config(method=name)).shares_prompt]


def test_pair_and_group_methods_are_those_that_share() -> None:
    """A method that is added follows suit: one that takes pairs shares, unless it asks one question about both
    sides."""
    offline = {name: spec for name, spec in methods().items() if not issubclass(spec.config, OnlineConfig)}
    pairs = {name for name, spec in offline.items() if "preferences" in spec.data} - {"preference_model"}
    groups = {name for name, spec in methods().items() if getattr(spec.config(method=name), "answers", 1) > 1}
    assert pairs | groups | {"online_dpo"} == set(SHARING)
    assert {"dpo", "kto", "reward_model", "grpo", "rloo", "online_dpo"} <= set(SHARING)


def rows(sequences: int) -> list[Example]:
    """Six prompts with a pair each, or with three examples of one response each, whose frozen log-probs, advantages and
    so on are of no model in particular."""
    draw = np.random.default_rng(0)

    def ids(low: int, high: int) -> np.ndarray:
        return draw.integers(1, SHAPE["vocab_size"], draw.integers(low, high)).astype(np.int32)

    def made(row: int, prompt: np.ndarray, weight: float) -> Example:
        responses = tuple(ids(2, 9) for _ in range(sequences))
        values = {
            OLD: -5.0 + draw.normal(size=16),
            ADVANTAGES: draw.normal(size=16),
            REFERENCE: -5.0 + draw.normal(size=16),
            SAMPLER_WEIGHTS: draw.uniform(0.5, 1.5, size=16),
            RETURNS: draw.normal(size=16),
            VALUES: draw.normal(size=16),
        }
        of_tokens = {
            name: tuple(array[: len(response)].astype(np.float32) for response in responses)
            for name, array in values.items()
        }
        frozen = {"reference": (-5.0 * np.array([len(r) for r in responses]) + draw.normal(size=sequences))}
        frozen = {name: array.astype(np.float32) for name, array in frozen.items()}
        example = Example(row, prompt, responses, weight=weight, margin=0.3, token_values=of_tokens)
        return replace(example, frozen_log_probs=frozen)

    examples = []
    for _ in range(6):
        prompt = ids(12, 30)
        for place in range(1 if sequences > 1 else 3):
            example = made(len(examples), prompt, 1.0 if place % 2 == 0 else -0.8)
            examples.append(replace(example, companion=made(len(examples), prompt, 1.0)) if sequences == 1 else example)
    return examples


def module_of(name: str, layout: str) -> torch.nn.Module:
    spec = methods()[name]
    torch.manual_seed(1)
    own = PADDING_FREE if layout == "padding_free" else "sdpa"

    def opened(kind: type, wrapper: type) -> torch.nn.Module:
        wrapped = wrapper(kind(LlamaConfig(**SHAPE)))
        wrapped.model.set_attn_implementation(own)
        return wrapped

    main = opened(LlamaForCausalLM, PolicyModule) if spec.reads == "labels" else None
    main = main or opened(LlamaForSequenceClassification, RewardModule)
    if not spec.also_trains:
        return main
    further = {trained.role: opened(LlamaForSequenceClassification, RewardModule) for trained in spec.also_trains}
    return JointModule({JointModule.MAIN: main, **further})


class Plain:
    """`Passes` of the module alone, one sequence at a time."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module

    @torch.no_grad()
    def per_sequence(self, examples, model=None):
        sums = []
        for example in examples:
            batch = Batcher("padded", "labels", 10_000, 0).collate([example])
            self.module.model.set_attn_implementation("sdpa")
            sums.append(sequence_sums(self.module(**batch.model_inputs())[0], batch.label_counts).numpy())
        return sums


def loss_and_gradients(name: str, layout: str, share: bool) -> tuple[float, dict[str, torch.Tensor], int]:
    spec = methods()[name]
    objective = training_of(spec.config(method=name)).objective()
    examples = rows(spec.sequences)
    prepared = {}
    if isinstance(objective, BatchObjective):
        prepared = objective.prepare(examples, Plain(module_of(name, "padded")))
    module = module_of(name, layout)
    batcher = Batcher(layout, objective.reads, 10_000, SHAPE["pad_token_id"], share=share)
    batch = replace(batcher.collate(examples), prepared=prepared)
    loss = objective.forward(module(**batch.model_inputs()), batch)[0] / objective.count(examples)
    loss.backward()
    gradients = {place: parameter.grad for place, parameter in module.named_parameters() if parameter.grad is not None}
    return loss.item(), gradients, batch.input_ids.numel()


@pytest.mark.parametrize("layout", ["padding_free", "packed"])
@pytest.mark.parametrize("name", SHARING)
def test_loss_and_gradients_are_those_of_plain_forwards(name: str, layout: str) -> None:
    """The gradients of all parameters agree to within 1e-5 of the largest one."""
    shared, ours, fewer = loss_and_gradients(name, layout, share=True)
    plain, theirs, positions = loss_and_gradients(name, "padded", share=False)
    assert fewer < 0.8 * positions
    assert shared == pytest.approx(plain, rel=TOLERANCE)
    assert ours.keys() == theirs.keys()
    largest = max(float(gradient.abs().max()) for gradient in theirs.values())
    assert largest > 1e-4
    for place, gradient in theirs.items():
        torch.testing.assert_close(ours[place], gradient, rtol=0, atol=TOLERANCE * largest, msg=place)
