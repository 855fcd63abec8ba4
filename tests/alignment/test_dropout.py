"""Which methods train with a model's dropout, and that it can be turned off whatever an architecture calls it."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, OPTConfig, PhiConfig

from steerboard_contracts.methods import methods
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.alignment.modules import without_dropout
from support.models.tiny_shape import SHAPE

DROPS_OUT = {"sft", "reward_model", "preference_model", "mle_filter", "rwr", "decision_transformer", "simpo", "orpo"}
GPT2 = {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "pad_token_id": 0}
OPT = {"vocab_size": 64, "hidden_size": 32, "ffn_dim": 64, "num_hidden_layers": 4, "num_attention_heads": 4}
ARCHITECTURES = {
    "llama": LlamaConfig(**SHAPE, attention_dropout=0.3),
    "gpt2": GPT2Config(**GPT2, attn_pdrop=0.3, embd_pdrop=0.3, resid_pdrop=0.3),
    "phi": PhiConfig(**SHAPE, attention_dropout=0.3, embd_pdrop=0.3, resid_pdrop=0.3),
    # A layer is left out with this chance.
    "opt": OPTConfig(**OPT, word_embed_proj_dim=32, dropout=0.0, attention_dropout=0.0, layerdrop=0.5),
}


def test_methods_that_compare_with_a_reference_or_sample_do_without_dropout():
    """Their first loss is that of a policy at its reference. Others train with what the model's config has."""
    without_dropout = {name for name, spec in methods().items() if training_of(spec.config(method=name)).drops_out}
    assert without_dropout & {*DROPS_OUT, "dpo", "ipo", "cdpo", "robust_dpo", "hinge", "mpo", "kto", "ppo"} == DROPS_OUT


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_model_in_training_gives_what_it_gives_in_evaluation(name):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(ARCHITECTURES[name])
    ids = torch.arange(3, 23)[None]
    with torch.no_grad():
        expected = model.eval()(ids).logits
        noisy = [model.train()(ids).logits for _ in range(4)]
        assert any((output - expected).abs().max() > 1e-3 for output in noisy)
        assert without_dropout(model)
        for _ in range(4):
            torch.testing.assert_close(model(ids).logits, expected)
    assert not without_dropout(model)
