"""The loss of a process reward model, and what the steps of an answer are worth together.

TRL had a PRMTrainer until it was removed: two classes for each token and cross-entropy at the last token of each step.
A head of one number, the difference of the two, has the same loss.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification, LlamaConfig

from steerboard_contracts.models import ProcessReward
from steerboard_workers.alignment.attention import PADDING_FREE
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.methods.process_reward_model import LABELS, StepObjective, first_of
from steerboard_workers.alignment.modules import RewardModule
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.alignment.step_rewards import StepRewards, aggregated, step_probabilities

CONFIG = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": 128,
    "initializer_range": 0.1,
    "pad_token_id": 0,
    "vocab_size": 100,
}
PLACES = ((2, 5, 8), (1, 3), (6,))
GIVEN = ((1.0, 1.0, 0.0), (0.0, 1.0), (1.0,))


def answers(labels=GIVEN) -> list[Example]:
    draw = np.random.default_rng(0)
    return [
        Example(
            row,
            draw.integers(1, 100, 4 + row).astype(np.int32),
            (draw.integers(1, 100, places[-1] + 1).astype(np.int32),),
            steps=(np.array(places, dtype=np.int32),),
            token_values={LABELS: (np.array(given, dtype=np.float32),)},
        )
        for row, (places, given) in enumerate(zip(PLACES, labels, strict=True))
    ]


def loss_of(
    module: RewardModule, batch: list[Example], layout: str = "padded"
) -> tuple[torch.Tensor, dict[str, float]]:
    module.model.set_attn_implementation(PADDING_FREE if layout == "padding_free" else "sdpa")
    objective = StepObjective()
    micro = Batcher(layout, objective.reads, 10_000, 0).collate(batch)
    loss, sums = objective.forward(module(**micro.model_inputs()), micro)
    return loss / objective.count(batch), objective.metrics(dict(zip(objective.measures, sums.tolist(), strict=True)))


@pytest.fixture
def models():
    """A scalar model, and a classifier of tokens whose classes differ by the same."""
    torch.manual_seed(0)
    ours = AutoModelForSequenceClassification.from_config(LlamaConfig(**CONFIG, num_labels=1)).eval()
    theirs = AutoModelForTokenClassification.from_config(LlamaConfig(**CONFIG, num_labels=2)).eval()
    theirs.model.load_state_dict(ours.model.state_dict())
    with torch.no_grad():
        theirs.score.bias.zero_()
        theirs.score.weight[1] = theirs.score.weight[0] + ours.score.weight[0]
    return ours, theirs


@pytest.mark.parametrize("layout", ["padded", "packed", "padding_free"])
def test_loss_and_gradient_are_those_of_two_classes_at_the_ends_of_steps(models, layout):
    ours, theirs = models
    batch = answers()
    loss, _ = loss_of(RewardModule(ours), batch, layout)
    loss.backward()
    width = max(max(e.lengths) for e in batch)
    ids, labels = torch.zeros(len(batch), width, dtype=torch.long), torch.full((len(batch), width), -100)
    for row, example in enumerate(batch):
        sequence = [*example.prompt, *example.responses[0]]
        ids[row, : len(sequence)] = torch.tensor(sequence)
        labels[row, len(example.prompt) + torch.tensor(PLACES[row])] = torch.tensor(GIVEN[row]).long()
    expected = theirs(input_ids=ids, labels=labels).loss
    expected.backward()
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-6)
    body = dict(theirs.model.named_parameters())
    for name, parameter in ours.model.named_parameters():
        torch.testing.assert_close(parameter.grad, body[name].grad, rtol=1e-3, atol=1e-6)


def test_soft_labels_have_the_cross_entropy_of_their_probability(models):
    soft = ((0.25, 1.0, 0.0), (0.5, 0.75), (1.0,))
    module = RewardModule(models[0])
    micro = Batcher("padded", "ends", 10_000, 0).collate(answers(soft))
    p = module(**micro.model_inputs()).sigmoid().tolist()
    flat = [label for row in soft for label in row]
    terms = [-y * math.log(q) - (1 - y) * math.log(1 - q) for y, q in zip(flat, p, strict=True)]
    assert loss_of(module, answers(soft))[0].item() == pytest.approx(sum(terms) / len(terms), rel=1e-5)


def test_a_zero_head_has_ln_2_and_is_half_right(models):
    torch.nn.init.zeros_(models[0].score.weight)
    loss, figures = loss_of(RewardModule(models[0]), answers())
    assert loss.item() == pytest.approx(math.log(2))
    assert figures["step_accuracy"] == 0.5


def test_the_first_wrong_step_counts_and_not_the_number_of_right_verdicts():
    """Three answers: the first error is found, is missed by an alarm before it, and none is found where none is."""
    logits = torch.tensor([2.0, -1.0, 3.0, -2.0, -2.0, 1.0, 1.0])
    labels = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0])

    counts = torch.tensor([3.0, 2.0, 2.0])
    objective = StepObjective()
    sums = objective.forward(logits, SimpleNamespace(label_counts=counts, token_values={LABELS: labels}))[1]
    figures = objective.metrics(dict(zip(objective.measures, sums.tolist(), strict=True)))
    assert figures["step_accuracy"] == pytest.approx(6 / 7)
    assert (figures["first_wrong_accuracy"], figures["flawless_accuracy"]) == (0.5, 1.0)
    assert first_of(labels < 0.5, counts).tolist() == [1.0, 4.0, 7.0]


def test_aggregates_are_of_the_probabilities_of_the_steps():
    logits = np.log(np.array([0.9 / 0.1, 0.5 / 0.5, 0.8 / 0.2], dtype=np.float32))
    assert step_probabilities(logits) == pytest.approx([0.9, 0.5, 0.8])
    rewards = {how: aggregated(logits, how) for how in ("min", "product", "last", "mean")}
    assert rewards == pytest.approx({"min": 0.5, "product": 0.36, "last": 0.8, "mean": 2.2 / 3})
    assert math.isnan(aggregated(np.array([1.0, np.nan], dtype=np.float32), "min"))
    assert aggregated(np.array([-1e4, 1e4], dtype=np.float32), "mean") == 0.5


def test_an_answer_is_divided_by_the_separator_and_read_at_its_end(own_tokenizer):
    renderer = Renderer(own_tokenizer, "plain", 256, whole=True)
    rewards = StepRewards(renderer, ProcessReward(separator="\n", aggregate="min"))
    (group,) = renderer.render_groups([[{"role": "user", "content": "sky?"}]], [["blue\nlight\nshort"]])
    example = rewards.divided(Example.of(0, group))
    assert example.label_counts == (3,)
    assert example.steps[0][-1] == len(example.responses[0]) - 1
