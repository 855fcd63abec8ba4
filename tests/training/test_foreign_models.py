"""Models that others have published: they come in as they are, score as published, or are refused by name."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification

from steerboard_contracts.errors import BadInput, BadModel
from steerboard_workers.stages import base
from steerboard_workers.stages.models.model_io import load_reward_model, read_info
from steerboard_workers.stages.models.scoring import Scorable, reward_engine, score_texts
from support.models.template_families import tokenizer_of

PROMPT = [{"role": "user", "content": "Name a city."}]
ANSWERS = ["Lima", "The quick brown fox", ""]


def published(folder: Path, family="chatml", *, kind=LlamaForCausalLM, rows=0, tokens=(), **config) -> Path:
    tokenizer = copy.deepcopy(tokenizer_of(family))
    tokenizer.add_tokens(list(tokens))
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = kind(LlamaConfig(vocab_size=len(tokenizer) + rows, pad_token_id=tokenizer.pad_token_id, **shape, **config))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def brought_in(make_stage, folder: Path, **config) -> Path:
    stage = make_stage({"run": "base", "source": str(folder), **config}, folders={"roots": [str(folder.parent)]})
    base.run(stage)
    return stage.directory / "outputs" / "model"


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("family", ["chatml", "phi-3", "llama-2"])
def test_a_published_reward_model_scores_as_its_makers_read_it(make_stage, tmp_path, family, tied):
    folder = published(
        tmp_path / "rm", family, kind=LlamaForSequenceClassification, num_labels=1, tie_word_embeddings=tied
    )
    loaded = load_reward_model(brought_in(make_stage, folder), device="cpu")
    rewards = score_texts(reward_engine(loaded), [Scorable(PROMPT, answer) for answer in ANSWERS], 512)
    model, tokenizer = LlamaForSequenceClassification.from_pretrained(folder).eval(), tokenizer_of(family)
    model.config.pad_token_id = None  # a single sequence is read at its last token
    for answer, reward in zip(ANSWERS, rewards, strict=True):
        turns = [*PROMPT, {"role": "assistant", "content": answer}]
        ids = tokenizer.apply_chat_template(turns, return_tensors="pt", return_dict=False)
        with torch.no_grad():
            assert reward == pytest.approx(float(model(ids).logits[0, 0]), abs=1e-5)


def test_a_model_of_several_labels_is_refused_by_their_names(make_stage, tmp_path):
    labels = {0: "harmful", 1: "helpful"}
    folder = published(tmp_path / "rm", kind=LlamaForSequenceClassification, num_labels=2, id2label=labels)
    with pytest.raises(BadModel, match="has 2 labels: 0 harmful, 1 helpful"):
        brought_in(make_stage, folder)
    with pytest.raises(BadModel, match="has 2 labels"):
        brought_in(make_stage, folder, label=2)


def test_of_several_labels_the_chosen_one_is_the_reward(make_stage, tmp_path):
    labels = {0: "harmful", 1: "helpful"}
    folder = published(tmp_path / "rm", kind=LlamaForSequenceClassification, num_labels=2, id2label=labels)
    ids = torch.arange(10)[None]
    theirs = LlamaForSequenceClassification.from_pretrained(folder)(ids).logits
    for label in labels:
        again = LlamaForSequenceClassification.from_pretrained(brought_in(make_stage, folder, label=label))
        assert again.config.id2label == {0: labels[label]}
        torch.testing.assert_close(again(ids).logits, theirs[:, label : label + 1])


def test_a_role_is_given_to_a_model_that_can_have_it(make_stage, tmp_path):
    folder = published(tmp_path / "lm")
    info = read_info(brought_in(make_stage, folder, role="sft"))
    assert info.role == "sft"
    with pytest.raises(BadInput, match="writes text, and cannot be of role reward"):
        brought_in(make_stage, folder, role="reward")


def test_a_token_without_embedding_is_refused_and_padded_embeddings_are_not(make_stage, tmp_path):
    with pytest.raises(BadModel, match="'<NEW>' is number"):
        brought_in(make_stage, published(tmp_path / "short", tokens=["<NEW>"], rows=-1))
    brought_in(make_stage, published(tmp_path / "padded", rows=40))


def test_a_head_of_its_own_stays_though_the_config_ties_it(make_stage, tmp_path):
    folder = published(tmp_path / "own-head", tie_word_embeddings=False)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": True}))
    ids = torch.arange(10)[None]
    again = AutoModelForCausalLM.from_pretrained(brought_in(make_stage, folder))
    assert not again.config.tie_word_embeddings
    assert torch.equal(again(ids).logits, AutoModelForCausalLM.from_pretrained(folder)(ids).logits)
