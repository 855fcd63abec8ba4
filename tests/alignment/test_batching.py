"""However a global batch is cut and laid out, the numbers are the same."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForSequenceClassification, LlamaConfig, LlamaForCausalLM

from steerboard_contracts.methods import needed_method
from steerboard_workers.alignment import head
from steerboard_workers.alignment.attention import PADDING_FREE
from steerboard_workers.alignment.batches import layouts
from steerboard_workers.alignment.batches.batching import PADDING_COST, PASS_COST, Batcher
from steerboard_workers.alignment.batches.layouts import padding_cost
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.alignment.methods.reward_model import RewardObjective
from steerboard_workers.alignment.modules import PolicyModule, RewardModule
from steerboard_workers.alignment.objectives import LanguageObjective
from steerboard_workers.stages.training.setup import follow_autocast

VOCABULARY = 64
LAYOUTS = ["padded", "packed", "padding_free"]
EOS = 2
CONFIG = LlamaConfig(
    vocab_size=VOCABULARY,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=128,
    pad_token_id=EOS,  # the trap: padding looks like the end token
    eos_token_id=EOS,
    num_labels=1,
    initializer_range=0.2,  # large weights, so that a leak between sequences shows
)


def examples(seed: int, n: int, responses: int, learned_prompt: bool = False) -> list[Example]:
    draw = np.random.default_rng(seed)
    made = []
    for row in range(n):
        prompt = draw.integers(3, VOCABULARY, draw.integers(2, 20)).astype(np.int32)
        answers = tuple(
            np.append(draw.integers(3, VOCABULARY, draw.integers(0, 15)), EOS).astype(np.int32)
            for _ in range(responses)
        )
        inside = np.arange(len(prompt)) % 3 == 1 if learned_prompt else None
        weight, margin = float(draw.uniform(0.5, 2)), float(draw.uniform(0, 1))
        made.append(Example(row, prompt, answers, inside, weight=weight, margin=margin))
    return made


@pytest.fixture(scope="module")
def policy():
    torch.manual_seed(0)
    return PolicyModule(LlamaForCausalLM(CONFIG).eval())


@pytest.fixture(scope="module")
def reward_model():
    torch.manual_seed(0)
    return RewardModule(AutoModelForSequenceClassification.from_config(CONFIG).eval())


def batcher(layout="padded", reads="labels", tokens=10_000, share=False, micro_batch=None):
    return Batcher(layout, reads, tokens, pad_id=EOS, share=share, micro_batch=micro_batch)


def attend(module, cutter):
    module.model.set_attn_implementation(PADDING_FREE if cutter.layout == "padding_free" else "sdpa")


def global_loss_and_gradient(module, objective, batch, cutter, ranks=1):
    """What an optimiser step computes, with the ranks one after the other."""
    attend(module, cutter)
    module.zero_grad()
    total = 0.0
    for mine in cutter.cut(batch, ranks):
        for part in mine:
            micro = cutter.collate(part or batch[:1])
            loss, _ = objective.forward(module(**micro.model_inputs()), micro)
            loss = loss * ((1.0 if part else 0.0) / objective.count(batch))
            loss.backward()
            total += loss.item()
    return total, torch.cat([p.grad.flatten() for p in module.parameters()])


def same(a, b, tolerance=1e-5):
    assert a[0] == pytest.approx(b[0], rel=tolerance)
    torch.testing.assert_close(a[1], b[1], rtol=1e-3, atol=tolerance * b[1].abs().max().item())


@pytest.mark.parametrize("layout", ["packed", "padding_free"])
@pytest.mark.parametrize("learned_prompt", [False, True])
def test_packed_equals_padded(policy, learned_prompt, layout):
    batch = examples(1, 9, 1, learned_prompt)
    objective = LanguageObjective()
    same(
        global_loss_and_gradient(policy, objective, batch, batcher(layout)),
        global_loss_and_gradient(policy, objective, batch, batcher("padded")),
    )


def test_padded_equals_one_sequence_at_a_time(policy):
    """No attention mask is needed behind right padding."""
    batch = examples(2, 9, 1)
    objective = LanguageObjective()
    same(
        global_loss_and_gradient(policy, objective, batch, batcher()),
        global_loss_and_gradient(policy, objective, batch, batcher(micro_batch=1)),
    )


@pytest.mark.parametrize("self_normalised", [False, True])
@pytest.mark.parametrize(("micro_batch", "ranks"), [(1, 1), (2, 1), (4, 2), (8, 1), (3, 4)])
def test_any_split_of_a_global_batch_gives_the_same_step(policy, micro_batch, ranks, self_normalised):
    batch = examples(3, 8, 1)
    objective = LanguageObjective(weighted=True, self_normalised=self_normalised)
    same(
        global_loss_and_gradient(policy, objective, batch, batcher(micro_batch=micro_batch), ranks),
        global_loss_and_gradient(policy, objective, batch, batcher()),
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("tokens", [70, 10_000])
def test_a_shared_prompt_gives_the_rewards_and_gradients_of_two_sequences(reward_model, layout, tokens):
    batch = examples(4, 7, 2)
    objective = RewardObjective(centre=0.01, use_margin=True)
    same(
        global_loss_and_gradient(reward_model, objective, batch, batcher(layout, "ends", tokens, share=True)),
        global_loss_and_gradient(reward_model, objective, batch, batcher("padded", "ends", micro_batch=1)),
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_shared_prompt_holds_for_token_losses_too(policy, layout):
    """What preference methods on log-probs need: the first token of each response follows the prompt's last."""
    batch = examples(5, 5, 3)
    outputs = []
    for share in (True, False):
        cutter = batcher(layout if share else "padded", share=share)
        attend(policy, cutter)
        micro = cutter.collate(batch)
        outputs.append((policy(**micro.model_inputs())[0], micro.labels, micro.sequence))
    torch.testing.assert_close(outputs[0][0], outputs[1][0], rtol=1e-4, atol=1e-5)
    assert outputs[0][1].tolist() == outputs[1][1].tolist()
    assert outputs[0][2].tolist() == outputs[1][2].tolist()


PAIR_METHODS = [
    *(("dpo", {}), ("dpo", {"reduction": "mean", "sft_weight": 1.0}), ("mpo", {})),
    *(("simpo", {}), ("orpo", {"sft_on": "sequence"})),
]


@pytest.fixture(scope="module")
def plain_pairs(policy):
    """plain_pairs(name, config) -> (objective, examples, their loss and gradient one pair at a time)."""
    known = {}

    def of(name, config):
        key = (name, *config.items())
        if key not in known:
            method = training_of(needed_method(name).config(method=name, **config))
            draw = np.random.default_rng(7)
            batch = []
            for e in examples(14, 8, 2):
                near = [-3.5 * len(r) + draw.normal(0, 3) for r in e.responses]
                batch.append(replace(method.learned(e), frozen_log_probs={"reference": np.array(near, np.float32)}))
            objective = method.objective()
            known[key] = objective, batch, global_loss_and_gradient(policy, objective, batch, batcher(micro_batch=1))
        return known[key]

    return of


@pytest.mark.parametrize(("name", "config"), PAIR_METHODS)
@pytest.mark.parametrize(
    ("layout", "share", "micro_batch", "ranks"),
    [
        *(("padded", False, None, 1), ("padded", True, 3, 1), ("packed", False, 2, 2), ("packed", True, None, 1)),
        *(("padding_free", False, 4, 1), ("padding_free", True, 3, 4)),
    ],
)
def test_a_batch_of_pairs_gives_the_same_step_however_it_is_split(
    policy, plain_pairs, name, config, layout, share, micro_batch, ranks
):
    """The split is over passes, processes and layouts, and the prompt is shared or not."""
    objective, batch, expected = plain_pairs(name, config)
    cutter = batcher(layout, share=share, micro_batch=micro_batch)
    same(global_loss_and_gradient(policy, objective, batch, cutter, ranks), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("micro_batch", "ranks"), [(None, 1), (3, 2)])
def test_samples_of_one_prompt_share_it_and_give_the_same_step(policy, layout, micro_batch, ranks):
    """Wherever in the batch they are, and whatever each of them learns of the prompt."""
    whole = examples(15, 4, 3, learned_prompt=True)
    batch = [replace(e, responses=(e.responses[k],), weight=k + 1.0) for k in range(3) for e in whole]
    batch[0] = replace(batch[0], prompt_supervised=None)
    objective = LanguageObjective(weighted=True)
    cutter = batcher(layout, share=True, micro_batch=micro_batch)
    same(
        global_loss_and_gradient(policy, objective, batch, cutter, ranks),
        global_loss_and_gradient(policy, objective, batch, batcher(micro_batch=1)),
    )
    positions = sum(cutter.collate(part).input_ids.numel() for part in cutter.cut(batch)[0])
    if layout != "padded" and micro_batch is None:
        assert positions < sum(e.tokens for e in batch)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("share", [False, True])
def test_a_score_does_not_change_with_its_batch_mates(reward_model, layout, share):
    batch = examples(6, 6, 2)
    cutter = batcher(layout, "ends", share=share)
    attend(reward_model, cutter)
    with torch.no_grad():
        together = reward_model(**cutter.collate(batch).model_inputs())
        alone = torch.cat([reward_model(**batcher(reads="ends").collate([e]).model_inputs()) for e in batch])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


def test_the_score_is_read_at_the_end_token_even_when_padding_is_the_same_token(reward_model):
    example = examples(7, 1, 1)[0]
    full = np.concatenate([example.prompt, example.responses[0]])
    with torch.no_grad():
        ours = reward_model(**batcher(reads="ends").collate([example, *examples(8, 3, 1)]).model_inputs())[0]
        hidden = reward_model.model.model(input_ids=torch.from_numpy(full)[None].long()).last_hidden_state
        torch.testing.assert_close(ours, reward_model.model.score(hidden)[0, -1, 0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("plain", [True, False])
def test_chunks_of_the_lm_head_change_nothing(policy, monkeypatch, plain):
    batch = examples(9, 6, 1)
    whole = global_loss_and_gradient(policy, LanguageObjective(), batch, batcher())
    if not plain:  # hooks would see no call
        monkeypatch.setattr(policy.model.lm_head, "_forward_pre_hooks", {0: lambda module, inputs: None})
    monkeypatch.setattr(head, "CPU_CHUNK_ELEMENTS", 5 * VOCABULARY)
    same(global_loss_and_gradient(policy, LanguageObjective(), batch, batcher()), whole)


def test_the_loss_is_the_models_own(policy):
    """transformers' labels with -100 on the prompt, averaged over supervised tokens."""
    batch = [Example(e.row, e.prompt, e.responses) for e in examples(10, 1, 1)]
    ids = torch.from_numpy(np.concatenate([batch[0].prompt, batch[0].responses[0]])).long()[None]
    labels = ids.clone()
    labels[:, : len(batch[0].prompt)] = -100
    theirs = policy.model(input_ids=ids, labels=labels).loss.item()
    assert global_loss_and_gradient(policy, LanguageObjective(), batch, batcher())[0] == pytest.approx(theirs, rel=1e-5)


def test_weights_of_one_are_sft_and_a_constant_weight_scales_raw_rwr_only(policy):
    batch = examples(11, 6, 1)
    plain = [Example(e.row, e.prompt, e.responses) for e in batch]
    heavy = [Example(e.row, e.prompt, e.responses, weight=3.0) for e in batch]
    sft = global_loss_and_gradient(policy, LanguageObjective(), plain, batcher())
    same(global_loss_and_gradient(policy, LanguageObjective(weighted=True), plain, batcher()), sft)
    raw = global_loss_and_gradient(policy, LanguageObjective(weighted=True), heavy, batcher())
    same(raw, (sft[0] * 3, sft[1] * 3))
    same(global_loss_and_gradient(policy, LanguageObjective(True, self_normalised=True), heavy, batcher()), sft)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("micro_batch", [None, 2])
def test_sequences_below_the_floor_are_reported_and_not_learned(policy, layout, micro_batch):
    batch = examples(16, 8, 1)
    alone = [[replace(example, weight=1.0)] for example in batch]
    costs = [global_loss_and_gradient(policy, LanguageObjective(), example, batcher())[0] for example in alone]
    floor = float(np.median(costs))
    learned = [
        replace(example, weight=example.weight * (cost >= floor)) for example, cost in zip(batch, costs, strict=True)
    ]
    objective = LanguageObjective(weighted=True, floor=floor)
    cutter = batcher(layout, micro_batch=micro_batch)
    same(
        global_loss_and_gradient(policy, objective, batch, cutter),
        global_loss_and_gradient(policy, LanguageObjective(weighted=True), learned, batcher()),
    )
    figures = {}
    for each in (objective, LanguageObjective(weighted=True)):
        with torch.no_grad():
            parts = [cutter.collate(part) for part in cutter.cut(batch)[0]]
            sums = sum(each.forward(policy(**micro.model_inputs()), micro)[1] for micro in parts)
        figures[each] = each.metrics(dict(zip(each.measures, sums.tolist(), strict=True)))
    (floored, plain) = figures.values()
    assert floored.pop("below_floor") == 4 / 8
    assert floored == pytest.approx(plain)


@given(
    n=st.integers(1, 30),
    tokens=st.integers(10, 200),
    ranks=st.integers(1, 5),
    micro_batch=st.one_of(st.none(), st.integers(1, 5)),
    layout=st.sampled_from(LAYOUTS),
    share=st.booleans(),
)
@settings(max_examples=120, deadline=None)
def test_cutting_keeps_every_example_once_and_gives_ranks_equal_numbers(n, tokens, ranks, micro_batch, layout, share):
    batch = examples(n, n, 2)
    cutter = batcher(layout, "ends", tokens, share, micro_batch)
    cut = cutter.cut(batch, ranks)
    assert len({len(mine) for mine in cut}) == 1
    assert sorted(e.row for mine in cut for part in mine for e in part) == list(range(n))
    for part in (part for mine in cut for part in mine if len(part) > 1):
        micro = cutter.collate(part)
        assert micro.input_ids.numel() <= tokens
        assert (micro.position_ids is None) == (layout == "padded" and not share)
        assert micro_batch is None or len(part) <= micro_batch


@given(
    n=st.integers(1, 8),
    tokens=st.integers(30, 200),
    layout=st.sampled_from(LAYOUTS),
    attention=st.sampled_from([PADDING_COST, 0.0]),
)
@settings(max_examples=60, deadline=None)
def test_no_other_cut_of_the_sorted_batch_costs_less(n, tokens, layout, attention):
    cutter = replace(batcher(layout, tokens=tokens), padding_cost=attention)
    ordered = sorted(examples(n, n, 1), key=lambda e: -e.tokens)

    def cost(parts):
        total = 0.0
        for part in parts:
            lengths = [e.tokens for e in part]
            padding = len(part) * max(lengths) - sum(lengths)
            used = sum(lengths) + {"padded": 1.0, "packed": 0.0, "padding_free": attention}[layout] * padding
            if used > tokens and len(part) > 1:
                return math.inf
            total += used + PASS_COST * tokens
        return total

    every_cut = (
        [ordered[a:b] for a, b in itertools.pairwise((0, *inner, n))]
        for k in range(n)
        for inner in itertools.combinations(range(1, n), k)
    )
    assert cost(cutter.cut(ordered)[0]) == pytest.approx(min(cost(parts) for parts in every_cut))


def test_where_nothing_is_padded_a_batch_within_the_budget_is_one_pass(reward_model, monkeypatch):
    lengths = [9] * 16 + [99] * 4
    batch = [Example(row, np.full(n, 3, np.int32), (np.array([EOS], np.int32),)) for row, n in enumerate(lengths)]
    passes = []
    for kernel in (False, True):
        monkeypatch.setattr(layouts, "takes_lengths", lambda *_, kernel=kernel: kernel)
        cost = padding_cost(reward_model.model, torch.device("cpu"), torch.bfloat16)
        passes.append(len(replace(batcher("padding_free", tokens=2000), padding_cost=cost).cut(batch)[0]))
    assert passes == [2, 1]


@pytest.mark.parametrize("share", [False, True])
def test_in_bf16_sequences_without_padding_give_what_padded_ones_do(reward_model, share):
    """Short sequences in bf16 go through attention of our own on a CPU."""
    results = []
    # As in training: without it, float32 rotary positions would make queries and keys float32 again.
    hook = reward_model.model.get_input_embeddings().register_forward_hook(follow_autocast)
    for layout in ("padding_free", "padded"):
        with torch.autocast("cpu", torch.bfloat16):
            cutter = batcher(layout, "ends", share=share)
            results.append(global_loss_and_gradient(reward_model, RewardObjective(), examples(13, 6, 2), cutter))
    hook.remove()
    assert results[0][0] == pytest.approx(results[1][0], rel=0.03)
    assert torch.cosine_similarity(results[0][1], results[1][1], dim=0) > 0.995


def test_reward_measures_are_those_of_the_definitions():
    batch = batcher(reads="ends").collate(examples(12, 4, 2))
    rewards = torch.tensor([2.0, 1.0, 0.0, 0.0, -1.0, 3.0, 5.0, 4.5])
    _, sums = RewardObjective().forward(rewards, batch)
    metrics = RewardObjective().metrics(dict(zip(RewardObjective.measures, sums.tolist(), strict=True)))
    assert metrics["pair_accuracy"] == pytest.approx((1 + 0.5 + 0 + 1) / 4)  # a tie is half right
    assert metrics["margin"] == pytest.approx((1 + 0 - 4 + 0.5) / 4)
    assert metrics["reward_mean"] == pytest.approx(rewards.mean().item())
    assert metrics["reward_std"] == pytest.approx(rewards.std(unbiased=False).item())
    expected = torch.corrcoef(torch.stack([rewards, batch.lengths]))[0, 1].item()
    assert metrics["reward_length_correlation"] == pytest.approx(expected, rel=1e-4)


def test_values_of_tokens_stay_with_their_tokens_in_every_layout_and_cut():
    examples = [
        Example(
            row=row,
            prompt=np.arange(3 + row, dtype=np.int32),
            responses=tuple(np.arange(2 + side, dtype=np.int32) + 100 * row + 10 * side for side in range(2)),
        )
        for row in range(4)
    ]
    examples = [replace(e, token_values={"ids": tuple(r.astype(np.float32) for r in e.responses)}) for e in examples]
    for layout, share in itertools.product(("padded", "packed", "padding_free"), (False, True)):
        batcher = Batcher(layout, "labels", 40, 0, share=share)
        for part in batcher.cut(examples)[0]:
            batch = batcher.collate(part)
            assert batch.token_values["ids"].tolist() == batch.labels.tolist()
    assert not batcher.collate([*examples, replace(examples[0], token_values={})]).token_values
