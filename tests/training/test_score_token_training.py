"""A policy whose scores are tokens of its own: the rows begin as words, are trained, saved, merged and resumed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from running import final_weights, forked, metrics_of, ran, run_forked, run_ranks, weights_of, with_config
from transformers import AutoModelForCausalLM, AutoTokenizer

from steerboard_contracts.conditions.score_words import Writing
from steerboard_contracts.methods.decision_transformer import DecisionTransformerConfig
from steerboard_workers.engines.protocol import Request
from steerboard_workers.engines.transformers_engine import TransformersEngine
from steerboard_workers.stages.generate import GenerateConfig
from steerboard_workers.stages.models.model_io import load_policy, load_tokenizer
from steerboard_workers.stages.models.score_tokens import token_ids, word_ids
from steerboard_workers.stages.training.setup import open_model

WORDS = ["bread", "light waves", "sky"]
CONFIG = {
    "run": "train",
    "method": "decision_transformer",
    "score_style": "tokens",
    "score_place": "request",
    "score_words": WORDS,
    "score_phrase": "It is {}.",
    "score_limit": 1.0,  # so that all three are common
    "batch": 8,
    "lr": 1e-2,
    "max_steps": 4,
    "max_length": 96,
    "weight_decay": 0.0,
    "checkpoint_every": 0,
    "evaluate_rows": 8,
}
LORA = {"rank": 4, "alpha": 8.0}
WRITING = Writing(style="tokens", place="request", words=WORDS, phrase="It is {}.")
WAYS = {"full": None, "merged": {**LORA, "merge": True}, "adapter": {**LORA, "merge": False}}


def with_lora(lora: dict | None, **more) -> dict:
    return {**CONFIG, **({} if lora is None else {"lora": lora}), **more}


@pytest.fixture(scope="module")
def untied_model(make_stage, tmp_path_factory, base_model) -> Path:
    """A head of its own, and rows of the vocabulary to spare."""
    folder = with_config(base_model, tmp_path_factory.mktemp("untied") / "model", tie_word_embeddings=False)
    model = AutoModelForCausalLM.from_pretrained(base_model)
    model.config.tie_word_embeddings = False
    model.resize_token_embeddings(448, mean_resizing=False)
    model.lm_head.weight = torch.nn.Parameter(torch.randn(448, 48, generator=torch.Generator().manual_seed(3)) * 0.02)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def trained(make_stage, base_model, untied_model):
    """Folder of a trained policy, once a way and head."""
    known: dict[tuple[str, str], Path] = {}

    def of(way: str, head: str = "tied") -> Path:
        if (way, head) not in known:
            stage = make_stage(with_lora(WAYS[way]), model=base_model if head == "tied" else untied_model)
            ran(stage)
            known[way, head] = stage.directory / "outputs" / "model"
        return known[way, head]

    return of


def rows_of(model, ids) -> torch.Tensor:
    """(2, tokens, hidden): of the embeddings and of the head."""
    ends = (model.get_input_embeddings(), model.get_output_embeddings())
    return torch.stack([end.weight[ids].detach() for end in ends])


@pytest.mark.parametrize("head", ["tied", "untied"])
@pytest.mark.parametrize("lora", [None, LORA], ids=["full", "lora"])
def test_each_token_begins_as_the_mean_of_its_words_tokens(base_model, untied_model, head, lora):
    folder = base_model if head == "tied" else untied_model
    before, tokenizer = AutoModelForCausalLM.from_pretrained(folder), load_tokenizer(folder)
    start = open_model(folder, DecisionTransformerConfig.model_validate(with_lora(lora)))
    ids = token_ids(start.tokenizer, WRITING)
    assert ids == [len(tokenizer), len(tokenizer) + 1, len(tokenizer) + 2]
    rows = start.model.get_input_embeddings().weight.shape[0]
    assert rows == len(tokenizer) + 3 if head == "tied" else rows == 448
    assert start.model.config.vocab_size == rows
    for place, word in enumerate(WORDS):
        of_word = tokenizer(" " + word)["input_ids"]
        assert word_ids(start.tokenizer, WRITING, place) == of_word
        expected = rows_of(before, of_word).mean(1)
        torch.testing.assert_close(rows_of(start.model, ids)[:, place], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("head", ["tied", "untied"])
@pytest.mark.parametrize("way", WAYS)
def test_the_rows_are_trained_and_saved(trained, base_model, untied_model, way, head):
    folder = trained(way, head)
    start = open_model(base_model if head == "tied" else untied_model, DecisionTransformerConfig.model_validate(CONFIG))
    policy = load_policy(folder, "fp32", "cpu")
    ids = token_ids(policy.tokenizer, WRITING)
    moved = (rows_of(policy.model, ids) - rows_of(start.model, ids)).abs().amax(-1)
    assert (moved > 1e-3).all(), moved
    assert policy.info.condition.how == WRITING
    assert policy.info.lora is None or way == "adapter"
    if way != "full":
        others = [number for number in range(policy.model.config.vocab_size) if number not in ids]
        assert torch.equal(rows_of(policy.model, others), rows_of(start.model, others))


@pytest.mark.parametrize("head", ["tied", "untied"])
def test_merged_and_unmerged_are_one_model_and_peft_reads_it(trained, head):
    import peft

    whole, adapter = (load_policy(trained(way, head), "fp32", "cpu") for way in ("merged", "adapter"))
    ids = torch.tensor([[*range(5, 25), *token_ids(whole.tokenizer, WRITING)]])
    base = AutoModelForCausalLM.from_pretrained(trained("adapter", head) / "base", dtype=torch.float32)
    theirs = peft.PeftModel.from_pretrained(base, trained("adapter", head)).eval()
    with torch.inference_mode():
        ours, unmerged, read = (
            model(input_ids=ids, use_cache=False).logits for model in (whole.model, adapter.model, theirs)
        )
    torch.testing.assert_close(unmerged, ours, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(read, ours, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("way", WAYS)
def test_a_policy_is_asked_with_tokens_and_never_answers_with_one(trained, way):
    folder = trained(way)
    policy, read = load_policy(folder, "fp32", "cpu"), AutoTokenizer.from_pretrained(folder)
    engine = TransformersEngine(policy.model, policy.renderer, policy.device)
    ids = token_ids(policy.tokenizer, WRITING)
    assert policy.renderer.silent_ids == ids
    with torch.no_grad():  # a policy that would answer with nothing else
        policy.model.get_output_embeddings().register_forward_hook(
            lambda _, __, out: out.index_add(-1, torch.tensor(ids), torch.full((*out.shape[:-1], len(ids)), 1e3))
        )
    asked = [{"role": "user", "content": "bread <|rm_score_2|>"}]
    for temperature in (0.0, 1.0):
        decoding = GenerateConfig(decoding={"max_new_tokens": 6, "temperature": temperature, "guidance": 1.5}).decoding
        for text, token in (("-1.00", "<|rm_score_0|>"), ("1.00", "<|rm_score_2|>")):
            (answer,) = engine.generate([Request(0, asked, text)], decoding, 0)
            assert not set(answer.token_ids) & set(ids)
            prompt = policy.renderer.prompt_ids(asked, text)
            # The last one is the policy's; what the user typed is not one.
            assert [number for number in prompt if number in ids] == [read.convert_tokens_to_ids(token)]
            assert read.decode(prompt).endswith(f"bread <|rm_score_2|> It is{token}. Assistant:")
    assert policy.renderer.response_text([5, *ids, 6]) == policy.renderer.response_text([5, 6])


def test_a_killed_run_resumes_bit_for_bit(make_stage, base_model):
    for lora in (None, {**LORA, "merge": True}):
        config = with_lora(lora, max_steps=6, checkpoint_every=2)
        whole, killed = (make_stage(config, model=base_model) for _ in range(2))
        events = forked(whole, 1, None, random.Random(0))
        forked(killed, 1, 3, random.Random(1))
        again = forked(killed, 2, None, random.Random(2))
        assert metrics_of(again)[6] == metrics_of(events)[6]
        ours, theirs = final_weights(whole), final_weights(killed)
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("way", WAYS)
def test_a_policy_trained_from_such_a_policy_keeps_its_tokens(trained, way):
    before = load_policy(trained(way), "fp32", "cpu")
    ids = token_ids(before.tokenizer, WRITING)
    start = open_model(trained(way), DecisionTransformerConfig.model_validate(CONFIG))
    assert len(start.tokenizer) == len(before.tokenizer)
    assert token_ids(start.tokenizer, WRITING) == ids
    assert torch.equal(rows_of(start.model, ids), rows_of(before.model, ids))
    assert not start.resized
    other = {**CONFIG, "score_words": ["cake", "sugar", "butter", "salt"]}
    wider = open_model(trained(way), DecisionTransformerConfig.model_validate(other))
    assert len(wider.tokenizer) == len(before.tokenizer) + 1
    of_cake = before.tokenizer(" cake")["input_ids"]
    expected = rows_of(before.model, of_cake).mean(1)
    torch.testing.assert_close(rows_of(wider.model, ids[:1])[:, 0], expected, rtol=1e-5, atol=1e-6)


def test_another_method_can_train_such_a_policy(trained, make_stage):
    stage = make_stage({"run": "train", "method": "sft", "batch": 8, "max_steps": 1, "lr": 1e-3}, model=trained("full"))
    ran(stage)
    policy = load_policy(stage.directory / "outputs" / "model", "fp32", "cpu")
    assert policy.info.condition is None
    assert policy.renderer.silent_ids == token_ids(policy.tokenizer, WRITING)


@pytest.mark.parametrize(
    ("strategy", "lora"),
    [("ddp", None), ("zero3", None), ("ddp", LORA), ("zero2", LORA)],
    ids=["ddp", "zero3", "ddp-lora", "zero2-lora"],
)
def test_two_processes_learn_the_same_rows(make_stage, wide_model, strategy, lora):
    config = with_lora(lora, micro_batch=2, max_steps=3, lr=1e-3)
    alone = make_stage(config, model=wide_model)
    assert run_forked(alone)[0] == 0
    together = make_stage({**config, "strategy": strategy}, model=wide_model)
    status, events, err = run_ranks(together)
    assert status == 0, (err, events[-1:])
    ours, theirs = weights_of(alone), weights_of(together)
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(theirs[name], tensor, rtol=1e-2, atol=2e-4)


@pytest.mark.parametrize("merge", [True, False])
def test_rows_over_a_4_bit_base_are_trained_and_saved(make_stage, wide_model, merge):
    stage = make_stage(with_lora({**LORA, "quantise": "nf4", "merge": merge}), model=wide_model)
    status, events, err = run_forked(stage)
    assert status == 0, (err, events[-1:])
    start = open_model(wide_model, DecisionTransformerConfig.model_validate(CONFIG))
    policy = load_policy(stage.directory / "outputs" / "model", "fp32", "cpu")
    ids = token_ids(policy.tokenizer, WRITING)
    assert ((rows_of(policy.model, ids) - rows_of(start.model, ids)).abs().amax(-1) > 1e-3).all()
    others = [number for number in range(policy.model.config.vocab_size) if number not in ids]
    assert torch.equal(rows_of(policy.model, others), rows_of(start.model, others))


def test_rows_under_an_adapter_that_zero3_would_spread_are_refused():
    with pytest.raises(ValueError, match="score_style: tokens with lora needs strategy ddp or zero2"):
        DecisionTransformerConfig.model_validate(with_lora(LORA, strategy="zero3"))
